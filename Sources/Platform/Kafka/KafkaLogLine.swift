/// A line that librdkafka would log.
public struct KafkaLogLine: Sendable, Hashable {
  /// How bad it is.
  public enum Level: Sendable, Comparable {
    /// What a developer of librdkafka wants to know; only where the property `debug` asks for it.
    case debug
    /// What goes on.
    case info
    /// Worth knowing, nothing wrong.
    case notice
    /// Something that librdkafka goes on without.
    case warning
    /// Something failed.
    case error
  }

  /// How bad it is.
  public let level: Level
  /// librdkafka's short mark for the kind of line, such as `FAIL` or `CONFWARN`.
  public let facility: String
  /// What it says. Names brokers, topics and properties; librdkafka leaves secrets out.
  public let text: String
}

/// Takes librdkafka's log lines. Called on librdkafka's own threads, so it must be quick.
public typealias KafkaLog = @Sendable (KafkaLogLine) -> Void

extension KafkaLogLine.Level {
  /// From a level of syslog(3).
  init(syslog level: CInt) {
    switch level {
    case ...3: self = .error
    case 4: self = .warning
    case 5: self = .notice
    case 6: self = .info
    default: self = .debug
    }
  }
}
