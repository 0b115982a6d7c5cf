package import AccountStore
package import Configuration
import Kafka

/// What the program of a consumer reads at start.
package struct ConsumerConfiguration<Program: ConsumerProgram>: Configurable {
  /// Where events come from.
  package let kafka: KafkaSettings
  /// Where effects go.
  package let store: StoreSettings
  /// How it takes part in its group.
  package let consumer: ConsumerSettings
  /// What is the consumer's own.
  package let own: Program.Own
  /// What is logged and how.
  package let log: LogSettings

  /// Reads all that the program uses.
  package init(reading settings: inout Settings) {
    kafka = KafkaSettings(reading: &settings)
    store = StoreSettings(reading: &settings)
    consumer = ConsumerSettings(
      reading: &settings, of: Program.consumer, administrationPort: Program.administrationPort)
    kafka.tryOn(
      [.producer(deadline: ConsumerSettings.logDeadline), .consumer(consumer.membership), .admin], in: &settings)
    own = Program.Own(reading: &settings)
    log = LogSettings(reading: &settings)
  }
}
