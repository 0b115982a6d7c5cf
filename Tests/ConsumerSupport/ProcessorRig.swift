package import AccountEvents
package import AccountServices
package import AccountStore
package import EventLoop
package import Kafka
package import Telemetry
package import TestSupport
import Testing

/// A consumer's processor over topics in memory and a real store, with a clock that a test moves.
@Loop
package final class ProcessorRig {
  package let cluster: MemoryCluster
  package let source: MemorySource
  package let log: ClusterLog
  package let store: WatchedStore
  package let alarm = ManualAlarm()
  package let registry = MetricsRegistry()
  package let captured = CapturedLog()
  package let processor: EventProcessor
  private let consumer: EventConsumer
  package let file: StoreOfTests
  private var reading: Task<KafkaError?, Never>?
  private var hasEnded = false

  package nonisolated static let now = Timestamp.sample(1_800_000_000_000)
  package nonisolated static let bounds = ProcessingBounds(
    inFlight: 64, inFlightPerPartition: 32, waiting: 256, waitingPerPartition: 64, concurrency: 8,
    retries: RetryPace(first: .seconds(1), longest: .seconds(60)), alarmAfter: 3, giveUpAfter: .seconds(7 * 86_400),
    clockTolerance: .seconds(121))

  /// What a consumer is made with.
  package struct Surroundings {
    package let store: WatchedStore
    package let registry: MetricsRegistry
    package let logger: Logger
    /// The time by the clock that the test moves.
    package let now: @Sendable () -> Timestamp
    /// The same clock, as deadlines go by it.
    package let clock: @Loop () -> MonotonicTime
    /// The same again, for what is to happen at a time.
    package let agenda: Agenda
  }

  /// A process, on what an earlier one has left or runs on beside it, with its account store or that of `file`. Begins to read
  /// at once.
  package convenience init(
    _ consumer: EventConsumer, beside other: ProcessorRig? = nil, with file: StoreOfTests? = nil,
    bounds: ProcessingBounds = ProcessorRig.bounds, random: @escaping @Sendable () -> Double = { 1 }
  ) async throws {
    try await self.init(beside: other, with: file, bounds: bounds, random: random) { _ in consumer }
  }

  /// The same with a consumer that needs the store.
  package init(
    beside other: ProcessorRig? = nil, with file: StoreOfTests? = nil, bounds: ProcessingBounds = ProcessorRig.bounds,
    random: @escaping @Sendable () -> Double = { 1 }, makeConsumer: @Loop (Surroundings) throws -> EventConsumer
  ) async throws {
    cluster = other?.cluster ?? MemoryCluster()
    let file = file ?? other?.file ?? StoreOfTests()
    (self.file, store) = (file, WatchedStore(try await file.open()))
    source = MemorySource(cluster)
    log = ClusterLog(cluster)
    let (alarm, begin, agenda) = (alarm, alarm.now, Agenda(alarm))
    if let other { alarm.advance(by: other.alarm.now - begin) }
    let now = { @Sendable in Loop.assumeIsolated { Self.now + (alarm.now - begin) } }
    let logger = captured.logger()
    consumer = try makeConsumer(
      Surroundings(store: store, registry: registry, logger: logger, now: now, clock: { alarm.now }, agenda: agenda)
    )
    processor = EventProcessor(
      consumer, store: store, log: log, bounds: bounds, agenda: agenda, random: random, now: now,
      registry: registry, logger: logger)
    reading = Task(executorPreference: Loop.executor) { await self.read() }
  }

  private func read() async -> KafkaError? {
    defer { hasEnded = true }
    do throws(KafkaError) {
      try await processor.read(from: source)
      return nil
    } catch {
      return error
    }
  }

  /// Puts events onto the topic, all of one partition, and lets the processor do what it can.
  package func send(_ events: AccountEvent..., partition: Int32 = 0) async throws {
    for event in events { put(KafkaRecord.of(event), partition) }
    try await untilIdle()
  }

  /// Puts a record onto its topic that is so old.
  package func put(_ record: KafkaRecord, _ partition: Int32 = 0, age: Duration = .seconds(5)) {
    cluster.append(record, to: partition, timestamp: Self.now.milliseconds - age.components.seconds * 1000)
    source.wake()
  }

  /// Gives partitions of the account events to the processor.
  package func assign(_ partitions: Int32...) async throws {
    source.assign(Set(partitions.map(TopicPartition.events)))
    try await untilIdle()
  }

  /// Lets time pass.
  package func advance(by duration: Duration) async throws {
    alarm.advance(by: duration)
    try await untilIdle()
  }

  /// Waits until nothing goes on but what waits for time, for a test or for records.
  package func untilIdle() async throws {
    await turn()
    repeat {
      try await until(every: .milliseconds(1)) { isIdle }
      await turn()
    } while !isIdle
  }

  /// The processor does not know what its consumer asks the store.
  private var isIdle: Bool { processor.isIdle && store.underWay == 0 }

  /// Ends as a program that is told to.
  package func drain() async {
    await processor.end(within: .seconds(3600))
    await stop()
  }

  /// Reads no more, and lets go of the store.
  package func stop() async {
    reading?.cancel()
    while !hasEnded {
      // It may wait for time.
      alarm.advance(by: .seconds(1))
      await turn()
    }
    if log.isGone {
      // Whoever waits for what the log was given before the kill waits no more, and nothing comes of it.
      await processor.end(within: .zero)
      await log.close(within: .zero)
      alarm.advance(by: .seconds(10))
      await turn()
    }
    await store.close()
  }

  /// Reaches nothing any more, as a process that was killed.
  package func kill() {
    let gone = AccountStoreError(.closed, "killed")
    store.before = { _ throws(AccountStoreError) in throw gone }
    store.after = { _ throws(AccountStoreError) in throw gone }
    log.isGone = true
    source.fault = KafkaError(.closed, detail: "killed")
  }

  /// Why reading has ended, once it has.
  package func result() async -> KafkaError? { await reading?.value }

  /// How events stand, whatever faults there are.
  package func peek(_ events: [EventReference]) async throws -> [EventStanding] {
    let (before, after) = (store.before, store.after)
    store.before = { _ in }
    store.after = { _ in }
    defer { (store.before, store.after) = (before, after) }
    return try await store.standings(of: events, for: consumer.name)
  }

  /// How far the group is.
  package func committed(_ partition: Int32 = 0) -> Int64? { cluster.committed[.events(partition)] }

  /// A metric's value: its name as far as it tells it from others.
  package func metric(_ name: String) -> String? {
    String(decoding: registry.render(), as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
      .flatMap { $0.split(separator: " ").last.map(String.init) }
  }
}
