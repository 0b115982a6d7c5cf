package import AccountEvents
package import AccountStore
package import Configuration
import Kafka

/// What the program of a consumer reads at start.
package struct ConsumerConfiguration<Program: ConsumerProgram>: ServiceConfiguration {
  /// Where events come from.
  package let kafka: KafkaSettings
  /// Where effects go.
  package let store: StoreSettings
  /// How it takes part in its group.
  package let consumer: ConsumerSettings
  /// What proves an event, where events are verified; nil where the topic is believed.
  package let verification: VerificationSettings?
  /// Which events are verified, where some are.
  package let verifies: @Sendable (AccountEvent) -> Bool
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
    let isOn = settings.read(
      "\(Program.consumer).verify", .boolean, default: Program.verifies,
      "Whether an event is done only if Apple's signature in its record verifies, or if it was asked for with the store's key.\(Program.alwaysVerifies == nil ? "" : " Deletions are verified in any case.") Needs teams.TEAM.audiences, and Read on apple.signing-keys.v1."
    )
    let always = Program.alwaysVerifies
    verifies = { event in isOn || (always?(event) ?? false) }
    verification = isOn || always != nil ? VerificationSettings(reading: &settings) : nil
    own = Program.Own(reading: &settings)
    log = LogSettings(reading: &settings)
  }
}
