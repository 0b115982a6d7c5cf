import AccountEvents
import AccountServices
import AccountStore
import EventLoop
import Glibc
import Kafka
import Telemetry

/// What an event costs that a consumer does something about: records from memory, a store on the disk, a log in memory.
///
///     consumer DIRECTORY COUNT ACCOUNTS
///
/// Prints for a consumer whose effect lies in the store alone, for one that announces it too, for one that asks something
/// outside which answers at once, and for the same events again: the events a second, and for each the CPU time of this
/// process in microseconds.
@main
struct ConsumerBenchmark {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let count = Int(arguments[2]), let accounts = Int(arguments[3]) else {
      print("consumer DIRECTORY COUNT ACCOUNTS")
      exit(2)
    }
    exit(Loop.run { await run(in: arguments[1], count, accounts) })
  }

  @Loop
  private static func run(in directory: String, _ count: Int, _ accounts: Int) async -> Int32 {
    do {
      guard let key = MasterKey([UInt8](repeating: 7, count: 32)) else { return 2 }
      try await SQLiteAccountStore.begin("\(directory)/siwa.db", key)
      let store = try await SQLiteAccountStore.open("\(directory)/siwa.db", key)
      let records = (0..<count).compactMap { record($0, of: $0 % accounts) }
      let interest: @Sendable (AccountEvent) -> Interest? = { _ in Interest(severity: 0, yieldsTo: []) }
      let state: @Sendable (AccountEvent) -> [StoreChange] = { event in
        [.setRelay(RelayState(status: .disabled, address: nil, isPrivate: true, since: event.occurredAt))]
      }
      let said: @Sendable (AccountEvent) -> [Announcement] = { event in
        [
          Announcement(
            topic: .emailRelay, key: event.account.key, value: [UInt8](repeating: 120, count: 200), headers: [])
        ]
      }
      try await measure(
        "decided   ", records, store,
        .local("one", outcomes: ["done"], interest: interest) { _ in
          Decision("done")
        })
      try await measure(
        "stored    ", records, store,
        .local("two", outcomes: ["done"], interest: interest) { delivery in
          Decision("done", changes: state(delivery.event))
        })
      var announcing = EventConsumer.local("three", outcomes: ["done"], interest: interest) { delivery in
        Decision("done", changes: state(delivery.event))
      }
      announcing.announce = { event, _, _ in said(event) }
      try await measure("announced ", records, store, announcing)
      let asking = EventConsumer("four", outcomes: ["done"], interest: interest) { _ in
        await Loop.nextTurn()
        return Decision("done")
      }
      try await measure("asked     ", records, store, asking)
      try await measure("repeated  ", records, store, asking)
      await store.close()
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  @Loop
  private static func measure(
    _ what: String, _ records: [ConsumedRecord], _ store: any AccountStore, _ consumer: EventConsumer
  ) async throws {
    let source = BenchmarkSource(records)
    let processor = EventProcessor(
      consumer, store: store, log: BenchmarkLog(),
      bounds: ProcessingBounds(
        inFlight: 4096, inFlightPerPartition: 1024, waiting: 16_384, waitingPerPartition: 4096, concurrency: 64,
        retries: RetryPace(first: .seconds(1), longest: .seconds(60)), alarmAfter: 10,
        giveUpAfter: .seconds(7 * 86_400), clockTolerance: .seconds(121)
      ),
      agenda: Agenda(SystemAlarmClock()), random: { 1 }, now: { .now }, registry: MetricsRegistry(),
      logger: Logger(level: .warning, format: .text))
    let (start, before) = (MonotonicTime.now, cpuTime())
    let reading = Task(executorPreference: Loop.executor) {
      do throws(KafkaError) { try await processor.read(from: source) } catch { print(error) }
    }
    // A benchmark's own poll: a hundredth of a second is little beside the seconds that are measured.
    while source.committed < Int64(records.count) { try await Loop.sleep(for: .milliseconds(10)) }
    let (time, cpu) = (MonotonicTime.now - start, cpuTime() - before)
    reading.cancel()
    await reading.value
    let count = Double(records.count)
    print("\(what) \(Int(count / (time / .seconds(1)))) events/s, \(cpu / .microseconds(1) / count) µs of CPU each")
  }

  private static func record(_ number: Int, of account: Int) -> ConsumedRecord? {
    guard let id = EventID("jti-\(number)"), let team = TeamID("A1B2C3D4E5"), let client = ClientID("com.example.app"),
      let subject = AppleSubject("000768.6166f031167141e695698239959f\(account).1521"),
      let address = RelayAddress("dpdcnf87nu@privaterelay.appleid.com"),
      let time = Timestamp(milliseconds: 1_700_000_000_000 + Int64(number))
    else { return nil }
    let event = AccountEvent(
      id: id, team: team, audience: client, subject: subject, kind: .emailDisabled(address, isPrivate: true),
      occurredAt: time, issuedAt: time)
    let record = EventRecord(event, jws: [UInt8](repeating: 120, count: 1000))
    return ConsumedRecord(
      topic: record.topic.name, position: KafkaPosition(partition: 0, offset: Int64(number)), key: record.key,
      value: record.value, headers: record.headers.map { KafkaHeader($0.name, $0.value) },
      timestamp: time.milliseconds)
  }

  /// What all threads of this process have used so far.
  private static func cpuTime() -> Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

/// Records from memory, one partition.
@Loop
private final class BenchmarkSource: EventSource {
  private let records: [ConsumedRecord]
  private var position = 0
  private var isAssigned = false
  private var isPaused = false
  private var waiter: CheckedContinuation<Void, Never>?
  private(set) var committed: Int64 = 0

  init(_ records: [ConsumedRecord]) { self.records = records }

  func nextEvent(upTo limit: Int) async throws(KafkaError) -> GroupEvent? {
    if !isAssigned {
      isAssigned = true
      return .assigned([TopicPartition(Topic.accountEvents.name, 0)])
    }
    while !Task.isCancelled {
      if position < records.count, !isPaused {
        let some = Array(records[position...].prefix(limit))
        position += some.count
        return .records(some)
      }
      await withTaskCancellationHandler {
        await withCheckedContinuation { waiter = $0 }
      } onCancel: {
        Task { @Loop in wake() }
      }
    }
    return nil
  }

  private func wake() {
    waiter?.resume()
    waiter = nil
  }

  func pause(_ partitions: Set<TopicPartition>) throws(KafkaError) { isPaused = true }

  func resume(_ partitions: Set<TopicPartition>) throws(KafkaError) {
    isPaused = false
    wake()
  }

  func commit(_ offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError) {
    committed = offsets.values.map(\.offset).max() ?? committed
  }

  func release(committing offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError) {
  }

  func seek(to offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError) {}

  func commitments(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset] { [:] }

  func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent] { [:] }

  func checkTopics(within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> { [] }

  var isMember: Bool { isAssigned }

  func knownEnd(of partition: TopicPartition) -> Int64? { Int64(records.count) }

  func close() async {}
}

/// Takes everything.
@Loop
private final class BenchmarkLog: EventLog {
  func append(_ record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void) {}

  func append(_ record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void) {
    Loop.afterTurn { report(.success(EventLogPosition(partition: 0, offset: 0))) }
  }

  func check() async throws(EventLogError) {}

  func close(within patience: Duration) async {}
}
