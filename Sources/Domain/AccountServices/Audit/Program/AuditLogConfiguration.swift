package import AccountStore
package import Configuration
import Kafka

/// What `siwa-audit-log` reads at start.
package struct AuditLogConfiguration: Configurable {
  /// Where records come from.
  package let kafka: KafkaSettings
  /// Which store names accounts by its keyed hash.
  package let store: StoreSettings
  /// Who must have issued a notification.
  package let issuer: String
  /// The log itself.
  package let audit: AuditLogSettings
  /// What is logged and how.
  package let log: LogSettings

  /// Reads all that the program uses.
  package init(reading settings: inout Settings) {
    kafka = KafkaSettings(reading: &settings)
    kafka.tryOn([.consumer(nil), .admin], in: &settings)
    store = StoreSettings(reading: &settings)
    issuer = settings.readAppleIssuer()
    audit = AuditLogSettings(reading: &settings)
    log = LogSettings(reading: &settings)
  }
}
