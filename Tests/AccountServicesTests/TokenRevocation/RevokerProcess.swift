import AccountEvents
import AccountServices
import AccountStore
import AppleID
import ConsumerSupport
import EventLoop
import Kafka
import Telemetry
import TestSupport
import Testing

/// One process of the token revoker's, that reads from its start to its end.
@Loop
final class RevokerProcess {
  let endpoints: AppleTokenEndpoints
  let store: SQLiteAccountStore
  let source: MemorySource
  let revoker: TokenRevoker
  private let apple: AppleRevocations
  private let groups: ConsentGroups
  let alarm = ManualAlarm()
  private let log: ClusterLog
  private let processor: EventProcessor
  private let registry = MetricsRegistry()
  private var reading: Task<KafkaError?, Never>?

  init(
    _ endpoints: AppleTokenEndpoints, _ groups: ConsentGroups, _ cluster: MemoryCluster, _ captured: CapturedLog,
    _ store: SQLiteAccountStore
  ) {
    (self.endpoints, self.store, self.groups) = (endpoints, store, groups)
    let alarm = alarm
    source = MemorySource(cluster)
    log = ClusterLog(cluster)
    apple = AppleRevocations(endpoints, clock: { alarm.now }, random: { 1 }, logger: captured.logger())
    revoker = TokenRevoker(apple, groups, store: store)
    processor = EventProcessor(
      revoker.consumer, store: store, log: log,
      bounds: ProcessingBounds(
        inFlight: 64, inFlightPerPartition: 32, waiting: 256, waitingPerPartition: 64, concurrency: 8,
        retries: RetryPace(first: .seconds(1), longest: .seconds(60)), alarmAfter: 3, giveUpAfter: .seconds(7 * 86_400),
        clockTolerance: .seconds(121)),
      agenda: Agenda(alarm), random: { 1 }, now: { RevokerRig.now }, registry: registry, logger: captured.logger())
    reading = Task(executorPreference: Loop.executor) { await self.read() }
    source.assign([.events(0)])
  }

  /// A revoker that asks the same Apple, and reads the store through another one.
  func revoker(on store: any AccountStore) -> TokenRevoker { TokenRevoker(apple, groups, store: store) }

  private func read() async -> KafkaError? {
    do throws(KafkaError) {
      try await processor.read(from: source)
      return nil
    } catch {
      return error
    }
  }

  /// Loses its store, whatever is under way, and does nothing any more.
  func end() async {
    await store.close()
    await processor.end(within: .zero)
    reading?.cancel()
    _ = await reading?.value
    alarm.advance(by: .seconds(3600))
    await turn()
  }

  /// How many events are done with each outcome.
  var done: [String: Int] { counts("siwa_consumer_events_total", "outcome") }
  /// How many attempts have failed, or were too early, for each cause.
  var failed: [String: Int] { counts("siwa_consumer_retries_total", "cause") }
  /// How many events were put aside, for each cause.
  var deadLetters: [String: Int] { counts("siwa_consumer_dead_letters_total", "cause") }

  /// A counter's values that are not 0, by a label.
  private func counts(_ name: String, _ label: String) -> [String: Int] {
    var counts: [String: Int] = [:]
    for line in String(decoding: registry.render(), as: UTF8.self).split(separator: "\n") where line.hasPrefix(name) {
      guard let value = line.split(separator: " ").last.flatMap({ Int($0) }), value > 0,
        let text = line.split(separator: "\(label)=\"").last?.split(separator: "\"").first
      else { continue }
      counts[String(text)] = value
    }
    return counts
  }

  /// Waits until so many events are done, and what was to be said of them is said.
  func untilDone(_ number: Int) async throws {
    try await until { self.done.values.reduce(0, +) >= number && self.processor.isSilent }
  }

  /// Waits until an attempt has failed for this reason, for the so-manieth time.
  func untilFailed(_ cause: String, _ number: Int = 1) async throws {
    try await until { self.failed[cause, default: 0] >= number }
  }
}
