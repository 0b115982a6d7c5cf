import Glibc
import Synchronization

/// Where log lines go.
public struct LogSink: Sendable {
  let write: @Sendable (_ line: [UInt8]) -> Void

  /// Hands each line, with its newline, to `write`, which is called on whatever thread logs.
  public init(_ write: @escaping @Sendable (_ line: [UInt8]) -> Void) { self.write = write }

  /// Standard error, one write(2) a line, so that lines of several threads or processes do not mix.
  ///
  /// A line that cannot be written, or not at once because whoever reads has stopped reading, is lost and counted
  /// (`linesLost`): a log must never stop the service.
  ///
  /// The descriptor stays as it is: not to block is a property of what is open, which other processes may share. So the
  /// kernel is asked first. A pipe that is writable has room for PIPE_BUF bytes, and no line is longer (pipe(7)). The
  /// threads of this process ask and write one after the other; only where several processes write to one full pipe, one
  /// of them can still be held up.
  public static let standardError = LogSink { line in
    if !writeAtOnce(line, to: STDERR_FILENO) { lost.wrappingAdd(1, ordering: .relaxed) }
  }

  /// Writes without waiting; false where that cannot be.
  static func writeAtOnce(_ line: [UInt8], to number: CInt) -> Bool {
    writing.withLock { _ in
      var query = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
      guard unsafe poll(&query, 1, 0) == 1 else { return false }
      while true {
        let count = unsafe line.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
        if count >= 0 || errno != EINTR { return count == line.count }
      }
    }
  }

  /// The room that one thread has found must not be taken by another one before it writes.
  private static let writing = Mutex(())

  /// How many lines the standard error has not taken so far.
  public static var linesLost: UInt64 { lost.load(ordering: .relaxed) }

  private static let lost = Atomic<UInt64>(0)
}
