import Glibc

/// Writes log lines: a constant message, and the data as metadata.
///
/// A value, so that a connection or a record carries its own, with what is known of it, down the way (`with`).
/// Nothing is evaluated and nothing allocated for a line below the logger's level.
public struct Logger: Sendable {
  /// How many bytes of a text value are written; the rest is cut off and an ellipsis says so.
  public static let maximumValueSize = 512
  /// How long a line can be: as much as a pipe takes in one piece (PIPE_BUF). What does not fit is left out, and
  /// `log.truncated` says so.
  public static let maximumLineSize = 4096

  /// Lines below it are not written.
  public let level: LogLevel
  private let format: LogFormat
  private let sink: LogSink
  private let clock: @Sendable () -> Int64
  private var metadata: LogMetadata = [:]

  /// A logger without metadata. `clock` tells the milliseconds since 1970.
  public init(
    level: LogLevel, format: LogFormat, sink: LogSink = .standardError,
    clock: @escaping @Sendable () -> Int64 = Logger.systemTime
  ) {
    (self.level, self.format, self.sink, self.clock) = (level, format, sink, clock)
  }

  /// What the system's clock says, in milliseconds since 1970.
  @Sendable public static func systemTime() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The same logger, each of whose lines has this metadata too.
  public func with(_ metadata: LogMetadata) -> Logger {
    var copy = self
    copy.metadata.set(metadata)
    return copy
  }

  /// Logs for whoever looks for a mistake.
  public func debug(_ message: StaticString, _ metadata: @autoclosure () -> LogMetadata = [:]) {
    if level <= .debug { write(.debug, message, metadata()) }
  }

  /// Logs what happened.
  public func info(_ message: StaticString, _ metadata: @autoclosure () -> LogMetadata = [:]) {
    if level <= .info { write(.info, message, metadata()) }
  }

  /// Logs what is rare and worth knowing.
  public func notice(_ message: StaticString, _ metadata: @autoclosure () -> LogMetadata = [:]) {
    if level <= .notice { write(.notice, message, metadata()) }
  }

  /// Logs that something is wrong and the program copes.
  public func warning(_ message: StaticString, _ metadata: @autoclosure () -> LogMetadata = [:]) {
    if level <= .warning { write(.warning, message, metadata()) }
  }

  /// Logs that something is lost or undone until somebody acts.
  public func error(_ message: StaticString, _ metadata: @autoclosure () -> LogMetadata = [:]) {
    write(.error, message, metadata())
  }

  private func write(_ level: LogLevel, _ message: StaticString, _ own: LogMetadata) {
    var all = metadata
    all.set(own)
    var line = LogLine(format: format)
    line.begin(time: clock(), level: level, message: message)
    for entry in all.entries { line.append(entry.key, entry.value) }
    sink.write(line.finish())
  }
}
