package import AccountStore
package import Configuration
import Kafka

/// What `siwa-accounts` reads at start.
package struct AccountsConfiguration: Configurable {
  /// The teams, their apps and keys.
  package let teams: TeamsSettings
  /// Which apps share a person's consent.
  package let groups: ConsentGroups
  /// Where Apple's keys are, and how far Apple is trusted.
  package let apple: AppleSettings
  /// Where Apple exchanges codes.
  package let tokens: AppleTokenSettings
  /// How to reach the cluster, for deletions that were asked for and for events that applications are told of.
  package let kafka: KafkaSettings
  /// Where sign-ins are kept.
  package let store: StoreSettings
  /// How refresh tokens are validated.
  package let validation: ValidationSettings
  /// Who asks, and where.
  package let accounts: AccountsSettings
  /// What is logged and how.
  package let log: LogSettings

  /// Reads all that the program uses.
  package init(reading settings: inout Settings) {
    teams = TeamsSettings(readingWithKeys: &settings)
    groups = ConsentGroups(reading: &settings)
    apple = AppleSettings(reading: &settings)
    tokens = AppleTokenSettings(reading: &settings)
    kafka = KafkaSettings(reading: &settings)
    kafka.tryOn([.producer(deadline: OutboxPublisher.logDeadline), .consumer(nil), .admin], in: &settings)
    store = StoreSettings(reading: &settings)
    accounts = AccountsSettings(reading: &settings, teams: teams.teams)
    validation = ValidationSettings(reading: &settings)
    log = LogSettings(reading: &settings)
  }
}
