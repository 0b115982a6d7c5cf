package import Configuration
import Kafka

/// What `siwa-ingress` reads at start.
package struct IngressConfiguration: Configurable {
  /// Whose notifications are believed.
  package var teams: TeamsSettings
  /// Where Apple is, and how far it is trusted.
  package var apple: AppleSettings
  /// Where notifications go.
  package var kafka: KafkaSettings
  /// Where notifications arrive.
  package var ingress: IngressSettings
  /// What is logged and how.
  package var log: LogSettings

  /// The settings of all parts.
  package init(
    teams: TeamsSettings, apple: AppleSettings, kafka: KafkaSettings, ingress: IngressSettings, log: LogSettings
  ) {
    (self.teams, self.apple, self.kafka, self.ingress, self.log) = (teams, apple, kafka, ingress, log)
  }

  /// Reads all that the program uses.
  package init(reading settings: inout Settings) {
    teams = TeamsSettings(reading: &settings)
    apple = AppleSettings(reading: &settings)
    kafka = KafkaSettings(reading: &settings)
    ingress = IngressSettings(reading: &settings)
    kafka.tryOn([.producer(deadline: ingress.logDeadline), .admin], in: &settings)
    log = LogSettings(reading: &settings)
  }
}
