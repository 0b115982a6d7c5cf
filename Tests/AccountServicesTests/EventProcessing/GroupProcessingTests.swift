import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import Telemetry
import TestSupport
import Testing

/// Consumers as services in a group, on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct GroupProcessingTests {
  @Test func whoeverComesAndGoesInTheMiddleNoEventIsDoneTwiceAndNoneIsMissing() async throws {
    let stage = try await Stage()
    let first = try await stage.join()
    try await stage.send(200)
    try await until { stage.calls.events.count > 20 }
    let second = try await stage.join()
    // Events come while partitions move, and before them and after.
    while second.processor.partitionCount == 0 { try await stage.send(10) }
    // Counted before they are sent: they may all be done by the time that the log has the last of them.
    let before = stage.calls.events.count
    try await stage.send(200)
    try await until { stage.calls.events.count > before + 20 }
    try await stage.leave(first)
    try await stage.send(200)
    try await until { stage.calls.events.count == stage.sent && stage.calls.current == 0 }
    try await until { try await stage.committed() == Int64(stage.sent) }
    try await stage.leave(second)
    #expect(Set(stage.calls.events).count == stage.sent)
    #expect(stage.said.appended.count == stage.sent)
    await stage.close()
  }

  @Test func aBrokerThatStandsStillHoldsUpAndLosesNothing() async throws {
    let stage = try await Stage()
    let member = try await stage.join()
    try await stage.send(200)
    try await until { stage.calls.events.count > 20 }
    try stage.broker.freeze()
    try await until { stage.calls.current == 0 }
    stage.broker.thaw()
    try await stage.send(100)
    try await until { stage.calls.events.count == stage.sent && stage.calls.current == 0 }
    try await stage.leave(member)
    #expect(Set(stage.calls.events).count == stage.sent && stage.said.appended.count == stage.sent)
    await stage.close()
  }
}

/// A broker, a topic, a group, and whoever sends; what is said goes to memory.
@Loop
private final class Stage {
  struct Member {
    let processor: EventProcessor
    let service: ConsumerService
    let running: Task<KafkaError?, Never>
    let store: any AccountStore
  }

  let broker: RealBroker
  let calls = Calls()
  let said = MemoryCluster()
  private(set) var sent = 0
  private let configuration: KafkaConfiguration
  private let producer: Producer
  private let admin: Admin
  private let file = StoreOfTests()
  private nonisolated static let patience = Duration.seconds(300)

  init() async throws {
    broker = try await RealBroker()
    configuration = try KafkaConfiguration(properties: [
      ("bootstrap.servers", broker.bootstrapServers), ("session.timeout.ms", "300000"),
      ("heartbeat.interval.ms", "100"),
    ])
    admin = try Admin(configuration, log: { _ in })
    _ = try await admin.createTopics(
      [NewTopic(Topic.accountEvents.name, partitions: 6, replicationFactor: 1)], within: Self.patience)
    _ = try await admin.awaitTopic(Topic.accountEvents.name, within: Self.patience)
    producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), deadline: Self.patience,
      log: { _ in })
    // What a call outside would take: this is the work, so that partitions move in the middle of it. No test waits for it
    // or measures it.
    calls.gate = { _ in
      do { try await Loop.sleep(for: .milliseconds(2)) } catch { return }  // the member ends
    }
  }

  func join() async throws -> Member {
    let store = try await file.open()
    let (registry, logger) = (MetricsRegistry(), CapturedLog().logger())
    let log = ClusterLog(said)
    var bounds = ProcessorRig.bounds
    // A disk that takes long must not decide a test.
    (bounds.handover.work, bounds.handover.mark, bounds.handover.whole) = (.seconds(60), .seconds(30), .seconds(120))
    let processor = EventProcessor(
      calls.consumer(), store: store, log: log, bounds: bounds,
      agenda: Agenda(SystemAlarmClock()), random: { 1 }, now: { .now }, registry: registry, logger: logger)
    let service = try ConsumerService(
      processor, store: store, log: log, administration: .loopback(port: 0), registry: registry, logger: logger
    ) { [configuration] () throws(KafkaError) in
      let consumer = try Consumer(
        configuration,
        group: GroupMembership(ConsumerGroup("siwa-sample"), instance: nil, handover: .seconds(120)), log: { _ in })
      try consumer.subscribe(to: [Topic.accountEvents.name])
      return consumer
    }
    let running = Task(executorPreference: Loop.executor) { () -> KafkaError? in
      do throws(KafkaError) { try await service.run() } catch { return error }
      return nil
    }
    return Member(processor: processor, service: service, running: running, store: store)
  }

  func leave(_ member: Member) async throws {
    await member.service.drain(within: .seconds(300))
    #expect(await member.running.value == nil)
    await member.store.close()
  }

  /// Sends as many events, of fifty people.
  func send(_ count: Int) async throws {
    for _ in 0..<count {
      _ = try await producer.send(.of(.sample(sent, of: "user-\(sent % 50)")))
      sent += 1
    }
  }

  /// How far the group is, in all partitions together.
  func committed() async throws -> Int64 {
    let partitions = Set((0..<6).map { TopicPartition(Topic.accountEvents.name, $0) })
    return try await admin.commitments(
      of: ConsumerGroup("siwa-sample"), partitions, within: Self.patience
    ).values.map(\.offset).reduce(0, +)
  }

  func close() async {
    _ = await producer.close(within: .zero)
    await admin.close()
  }
}
