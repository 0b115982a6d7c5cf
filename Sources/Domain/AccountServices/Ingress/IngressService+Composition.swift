package import AccountEvents
import AppleID
import EventLoop
import Kafka
package import Telemetry

extension IngressService {
  /// Builds the ingress from its configuration: client to Apple, keys, producer, servers. Keys that the last run kept
  /// are taken up. Throws what is wrong with addresses, certificate or properties.
  package convenience init(
    _ configuration: IngressConfiguration, registry: MetricsRegistry, logger: Logger
  ) async throws {
    let keys = AppleKeys(configuration.apple, userAgent: "siwa-ingress", registry: registry, logger: logger)
    await keys.restore()
    let kafka = try configuration.kafka.configuration(of: "siwa-ingress")
    let log = try KafkaEventLog(
      topics: [.accountEvents, .quarantine, .signingKeys], kafka, deadline: configuration.ingress.logDeadline,
      registry: registry, logger: logger)
    let publisher = try await EventPublisher(
      configuration.ingress, log: log, registry: registry, logger: logger, now: { Timestamp.now })
    let verifier = NotificationVerifier(
      issuer: configuration.apple.issuer, teams: configuration.teams.teams,
      clockTolerance: configuration.apple.clockTolerance)
    try self.init(
      configuration.ingress, verifier: verifier, keys: keys, publisher: publisher, registry: registry, logger: logger,
      now: { Timestamp.now })
    topics = TopicWatch(kafka, TopicPlan.ofIngress, every: TopicWatch.hourly, registry: registry, logger: logger)
  }
}

extension EventPublisher {
  /// How long an account is left alone whose record Kafka did not take.
  private static let pace = RetryPace(first: .milliseconds(250), longest: .seconds(30))

  /// A publisher with spool and memory where the settings have them.
  package convenience init(
    _ settings: IngressSettings, log: any EventLog, registry: MetricsRegistry, logger: Logger,
    now: @escaping @Sendable () -> Timestamp
  ) async throws(SpoolError) {
    let spool = try await Spool.open(
      directory: settings.spool.directory, limit: settings.spool.size, now: now, registry: registry, logger: logger)
    try await self.init(
      log: log, spool: spool,
      accepted: AcceptedEvents(
        in: settings.spool.directory, number: settings.duplicates.number, time: settings.duplicates.time, now: now,
        logger: logger),
      patience: settings.spool.after, deadline: settings.publishDeadline, pace: Self.pace,
      metrics: PublicationMetrics(registry), logger: logger)
  }
}
