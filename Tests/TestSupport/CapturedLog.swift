import Synchronization
public import Telemetry

/// A log that a test can read. Time stands still at 2026-01-01T00:00:00.000Z.
public final class CapturedLog: Sendable {
  private let captured = Mutex<[String]>([])

  /// An empty log.
  public init() {}

  /// A logger that writes here.
  public func logger(level: LogLevel = .debug, format: LogFormat = .json) -> Logger {
    let sink = LogSink { [self] line in captured.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
    return Logger(level: level, format: format, sink: sink, clock: { 1_767_225_600_000 })
  }

  /// The lines so far, each with its newline.
  public var lines: [String] { captured.withLock { $0 } }
}
