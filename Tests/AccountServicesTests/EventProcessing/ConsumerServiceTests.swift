import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import HTTPClient
import Kafka
import Telemetry
import TestSupport
import Testing

/// A consumer as a service, whose group cannot always be gone on with.
@Loop @Suite(.timeLimit(.minutes(30))) struct ConsumerServiceTests {
  @Test func aGroupThatCannotBeGoneOnWithIsJoinedAnewAndNothingIsDoneTwice() async throws {
    let (calls, gate) = (Calls(), Signal())
    let members = Members()
    let service = try await members.serve(calls.consumer())
    try await until { members.sources.count == 1 }
    let first = members.sources[0]
    first.assign([.events(0)])
    members.put(.of(.sample(1)))
    try await until { calls.events == ["event-1"] && calls.current == 0 }
    calls.gate = { _ in await gate.wait() }
    members.put(.of(.sample(2)))
    try await until { calls.current == 1 }

    // In the middle of an event; and the next member cannot be made at once.
    members.refusal = KafkaError(.brokerUnavailable, detail: "told to")
    first.end = KafkaError(.fatal, detail: "told to")
    try await until { members.refusal == nil && first.isClosed }
    #expect(service.processor.partitionCount == 0)
    try await until { members.sources.count == 2 }
    members.sources[1].assign([.events(0)])
    members.put(.of(.sample(3)))
    gate.fire()
    calls.gate = { _ in }
    try await until { calls.events == ["event-1", "event-2", "event-3"] && calls.current == 0 }
    await service.service.drain(within: .seconds(300))
    #expect(await service.running.value == nil)
    #expect(members.cluster.committed[.events(0)] == 3)
    let said = members.cluster.appended(on: Topic.outcomes.name).map { String(decoding: $0.value ?? [], as: UTF8.self) }
    #expect(said == ["event-1", "event-2", "event-3"])
    #expect(service.captured.lines.count { $0.contains("the group has to be joined anew") } == 2)
    await service.store.close()
  }

  @Test func whoHasNoShareInItsGroupIsNotReadyUntilItHas() async throws {
    let members = Members()
    let service = try await members.serve(Calls().consumer())
    try await until { members.sources.count == 1 }
    let source = members.sources[0]
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 1,
        maximumRequests: 8))
    let url = try #require(HTTPClientURL("http://\(service.service.administrationAddress)/readyz"))
    func report() async throws -> String {
      String(
        decoding: try await client.send(.get(url, within: .seconds(300), maximumBodySize: 4096)).body, as: UTF8.self)
    }
    try await until { try await report().contains("group: not ready: not in the group\n") }
    // A share may be nothing.
    source.isMember = true
    try await until { try await report().contains("group: ready\n") }
    source.topicsFault = KafkaError(.notAuthorized, detail: "told to")
    try await until { try await report().contains("group: not ready: notAuthorized: told to\n") }
    source.topicsFault = nil
    try await until { try await report().contains("group: ready\n") }
    await service.service.drain(within: .seconds(300))
    _ = await service.running.value
    await service.store.close()
  }

  @Test func whoseNameAnotherHasTakenEndsAndSaysWhy() async throws {
    let members = Members()
    let service = try await members.serve(Calls().consumer())
    try await until { members.sources.count == 1 }
    members.sources[0].end = KafkaError(.fenced, detail: "told to")
    #expect(await service.running.value?.code == .fenced)
    #expect(members.sources.count == 1 && members.sources[0].isClosed)
    await service.store.close()
  }
}

/// The members of a group, one after the other, and what they read.
@Loop
private final class Members {
  struct Service {
    let processor: EventProcessor
    let service: ConsumerService
    let running: Task<KafkaError?, Never>
    let store: any AccountStore
    let captured: CapturedLog
  }

  let cluster = MemoryCluster()
  private(set) var sources: [MemorySource] = []
  /// Why the next one cannot be made.
  var refusal: KafkaError?
  private let file = StoreOfTests()

  func serve(_ consumer: EventConsumer) async throws -> Service {
    let (store, captured) = (try await file.open(), CapturedLog())
    let (registry, logger, log) = (MetricsRegistry(), captured.logger(), ClusterLog(cluster))
    let processor = EventProcessor(
      consumer, store: store, log: log, bounds: ProcessorRig.bounds, agenda: Agenda(SystemAlarmClock()),
      random: { 1 }, now: { .now }, registry: registry, logger: logger)
    let service = try ConsumerService(
      processor, store: store, log: log, administration: .loopback(port: 0), registry: registry, logger: logger
    ) { [self] () throws(KafkaError) in try join() }
    let running = Task(executorPreference: Loop.executor) { () -> KafkaError? in
      do throws(KafkaError) { try await service.run() } catch { return error }
      return nil
    }
    return Service(processor: processor, service: service, running: running, store: store, captured: captured)
  }

  private func join() throws(KafkaError) -> any EventSource {
    if let refusal {
      self.refusal = nil
      throw refusal
    }
    let source = MemorySource(cluster)
    sources.append(source)
    return source
  }

  /// Puts a record onto its topic.
  func put(_ record: KafkaRecord) {
    cluster.append(record, to: 0)
    sources.last?.wake()
  }
}
