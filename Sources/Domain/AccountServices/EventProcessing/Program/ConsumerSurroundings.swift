package import AccountEvents
package import AccountStore
public import EventLoop
package import Kafka
public import Telemetry

/// What a consumer is made with.
@Loop
public final class ConsumerSurroundings {
  /// Something that runs beside the consumer, as long as it does.
  typealias Companion = (run: @Loop @Sendable () async -> Void, drain: @Loop @Sendable (Duration) async -> Void)

  /// Where it logs.
  public let logger: Logger
  /// Where its own metrics are made.
  public let registry: MetricsRegistry
  /// What is known of accounts.
  package let store: any AccountStore
  /// Where records go.
  package let log: any EventLog
  /// How to reach the cluster.
  package let kafka: KafkaConfiguration
  /// How many events are processed at once, where that waits for something outside.
  package let concurrency: Int
  /// The team of each app that is ours; empty where events are not verified, for which it is read.
  package let teams: [ClientID: TeamID]
  private(set) var companions: [Companion] = []

  /// Surroundings from their parts.
  package init(
    store: any AccountStore, log: any EventLog, kafka: KafkaConfiguration, concurrency: Int,
    teams: [ClientID: TeamID], registry: MetricsRegistry, logger: Logger
  ) {
    (self.store, self.log, self.kafka, self.concurrency) = (store, log, kafka, concurrency)
    self.teams = teams
    (self.registry, self.logger) = (registry, logger)
  }

  /// Has something run beside the consumer; it is drained, within the time that is left, before the consumer is, and its
  /// `run` has to end then.
  package func accompany(
    run: @escaping @Loop @Sendable () async -> Void, drain: @escaping @Loop @Sendable (Duration) async -> Void
  ) { companions.append((run, drain)) }
}
