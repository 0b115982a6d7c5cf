package import Kafka
package import Telemetry

extension Logger {
  /// Takes the lines that librdkafka would log. Its errors are warnings here: librdkafka goes on trying, and what it
  /// could not do is told to whoever asked for it.
  package var forKafka: KafkaLog {
    { line in
      let metadata: LogMetadata = ["kafka.facility": .string(line.facility), "kafka.text": .string(line.text)]
      switch line.level {
      case .debug: debug("librdkafka", metadata)
      case .info, .notice: info("librdkafka", metadata)
      case .warning, .error: warning("librdkafka", metadata)
      }
    }
  }
}
