import Glibc

/// Where log lines go.
public struct LogSink: Sendable {
  let write: @Sendable (_ line: [UInt8]) -> Void

  /// Hands each line, with its newline, to `write`, which is called on whatever thread logs.
  public init(_ write: @escaping @Sendable (_ line: [UInt8]) -> Void) { self.write = write }

  /// Standard error, one write(2) a line, so that lines of several threads or processes do not mix.
  ///
  /// A line that cannot be written is lost: a log must never stop the service.
  public static let standardError = LogSink { line in
    unsafe line.withUnsafeBytes { bytes in
      while unsafe Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count) < 0, errno == EINTR {}
    }
  }
}
