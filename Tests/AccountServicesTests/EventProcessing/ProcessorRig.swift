import AccountEvents
import AccountServices
import AccountStore
import EventLoop
import Kafka
import Telemetry
import TestSupport

/// A consumer's processor over memory, with a clock that a test moves.
@Loop
final class ProcessorRig {
  let cluster: MemoryCluster
  let source: MemorySource
  let log: ClusterLog
  let store: MemoryAccountStore
  let alarm = ManualAlarm()
  let registry = MetricsRegistry()
  let captured = CapturedLog()
  let processor: EventProcessor
  let consumer: EventConsumer
  private var reading: Task<KafkaError?, Never>?

  nonisolated static let now = Timestamp.sample(1_800_000_000_000)
  nonisolated static let bounds = ProcessingBounds(
    inFlight: 64, inFlightPerPartition: 32, concurrency: 8,
    retries: RetryPace(first: .seconds(1), longest: .seconds(60)), alarmAfter: 3)

  /// A new process, on what an earlier one has left. Begins to read at once.
  init(
    _ consumer: EventConsumer, after last: ProcessorRig? = nil, bounds: ProcessingBounds = ProcessorRig.bounds
  ) {
    cluster = last?.cluster ?? MemoryCluster()
    store = last?.store ?? MemoryAccountStore()
    source = MemorySource(cluster)
    log = ClusterLog(cluster)
    self.consumer = consumer
    processor = EventProcessor(
      consumer, store: store, log: log, bounds: bounds, agenda: Agenda(alarm), random: { 1 }, now: { Self.now },
      registry: registry, logger: captured.logger())
    reading = Task(executorPreference: Loop.executor) { await self.read() }
  }

  private func read() async -> KafkaError? {
    do throws(KafkaError) {
      try await processor.read(from: source)
      return nil
    } catch {
      return error
    }
  }

  /// Puts events onto the topic, all of one partition, and lets the processor do what it can at once.
  func send(_ events: AccountEvent..., partition: Int32 = 0) async {
    for event in events { put(KafkaRecord.of(event), partition) }
    source.wake()
    await turn()
  }

  /// Puts a record onto the topic.
  func put(_ record: KafkaRecord, _ partition: Int32 = 0) { cluster.append(record, to: partition, timestamp: 0) }

  /// Gives partitions of the account events to the processor.
  func assign(_ partitions: Int32...) async {
    source.assign(Set(partitions.map(TopicPartition.events)))
    await turn()
  }

  /// Lets time pass.
  func advance(by duration: Duration) async {
    alarm.advance(by: duration)
    await turn()
  }

  /// Ends as a program that is told to.
  func drain() async {
    await processor.end(within: .seconds(3600))
    reading?.cancel()
    _ = await reading?.value
  }

  /// How far the group is.
  func committed(_ partition: Int32 = 0) -> Int64? { cluster.committed[.events(partition)] }

  /// A metric's value.
  func metric(_ name: String) -> String? {
    String(decoding: registry.render(), as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
      .flatMap { $0.split(separator: " ").last.map(String.init) }
  }
}

extension TopicPartition {
  static func events(_ partition: Int32) -> TopicPartition { TopicPartition(Topic.accountEvents.name, partition) }
}

extension Timestamp {
  static func sample(_ milliseconds: Int64) -> Timestamp {
    guard let time = Timestamp(milliseconds: milliseconds) else { preconditionFailure("\(milliseconds) is no time") }
    return time
  }
}

extension AccountEvent {
  /// Something that happened to `user` at a time that the number gives.
  static func sample(_ number: Int, of user: String = "ada", _ kind: Kind = .consentRevoked) -> AccountEvent {
    guard let id = EventID("event-\(number)"), let team = TeamID("A1B2C3D4E5"), let subject = AppleSubject(user),
      let audience = ClientID("com.example.app")
    else { preconditionFailure("the sample is well-formed") }
    return AccountEvent(
      id: id, team: team, audience: audience, subject: subject, kind: kind,
      occurredAt: .sample(1_700_000_000_000 + Int64(number)), issuedAt: .sample(1_700_000_005_000 + Int64(number)))
  }
}

extension KafkaRecord {
  static func of(_ event: AccountEvent) -> KafkaRecord {
    let record = EventRecord(event, jws: nil)
    return KafkaRecord(
      topic: record.topic.name, key: record.key, value: record.value,
      headers: record.headers.map { KafkaHeader($0.name, $0.value) })
  }
}

extension ConsumerName {
  static var sample: ConsumerName {
    guard let name = ConsumerName("sample") else { preconditionFailure("the sample is well-formed") }
    return name
  }
}
