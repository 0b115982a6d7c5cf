import CLibrdkafka

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

extension KafkaLogLine {
  /// From what librdkafka would log at a level of syslog(3). A request that the client's own end has cut off is no failure,
  /// though librdkafka says so of one that was about to authenticate.
  init(syslog level: CInt, facility: String, text: String) {
    self.init(level: text.contains(Self.cutOff) ? .debug : Level(syslog: level), facility: facility, text: text)
  }

  /// What librdkafka calls such a request.
  private static let cutOff = unsafe String(cString: rd_kafka_err2str(RD_KAFKA_RESP_ERR__DESTROY))
}

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
