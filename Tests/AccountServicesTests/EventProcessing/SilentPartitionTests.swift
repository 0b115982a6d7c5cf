import AccountServices
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// A partition of which nothing comes does not look like one on which there is nothing.
@Loop @Suite(.timeLimit(.minutes(30))) struct SilentPartitionTests {
  private let one = TopicPartition.events(0)
  private let other = TopicPartition.events(1)

  /// A process that has two partitions, and has processed an event of each.
  private func rig(_ calls: Calls) async throws -> ProcessorRig {
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0, 1)
    try await rig.send(.sample(1, of: "user-1"))
    try await rig.send(.sample(2, of: "user-2"), partition: 1)
    try await surveys(1, rig)
    return rig
  }

  private func surveys(_ count: Int, _ rig: ProcessorRig) async throws {
    for _ in 0..<count { try await rig.advance(by: .seconds(10)) }
  }

  private func lag(_ rig: ProcessorRig) -> String? { rig.metric("siwa_consumer_lag") }

  private func lines(_ rig: ProcessorRig) -> [String] {
    rig.captured.lines.filter { $0.contains("nothing comes of a partition") }
  }

  @Test func recordsThatAreNotFetchedAreLagAndKeepTheConsumerFromBeingReady() async throws {
    let calls = Calls()
    let rig = try await rig(calls)
    rig.source.withheld = [other]
    try await rig.send(.sample(3, of: "user-1"))
    try await rig.send(.sample(4, of: "user-2"), partition: 1)
    try await surveys(3, rig)
    #expect(calls.events == ["event-1", "event-2", "event-3"] && lag(rig) == "1")
    let cause = "\(other) brings nothing, though it ends at 2: may its topic be read?"
    #expect(await rig.processor.groupState() == .notReady(cause: cause))
    rig.source.topicsFault = KafkaError(.brokerUnavailable, detail: "nobody answers")
    #expect(await rig.processor.groupState() == .notReady(cause: cause))
    rig.source.topicsFault = nil
    try await surveys(3, rig)
    #expect(lines(rig).count == 1)
    rig.source.withheld = []
    rig.source.wake()
    try await rig.untilIdle()
    #expect(calls.events.last == "event-4" && lag(rig) == "0")
    #expect(await rig.processor.groupState() == .ready)
    await rig.drain()
  }

  @Test func aPartitionThatNobodyCouldReadFromTheBeginningIsSeenToo() async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    (rig.source.withheld, rig.source.silence) = ([one], KafkaError(.timedOut, detail: "nobody answers"))
    try await rig.assign(0)
    rig.source.silence = nil
    try await rig.send(.sample(1))
    #expect(lag(rig) == "0")
    try await surveys(3, rig)
    let cause = "\(one) brings nothing, though it ends at 1: may its topic be read?"
    #expect(await rig.processor.groupState() == .notReady(cause: cause) && lag(rig) == "1")
    await rig.drain()
  }

  @Test func aPartitionWithoutALeaderIsNamed() async throws {
    let rig = try await rig(Calls())
    rig.source.leaderless = [one, other, .events(2)]
    #expect(await rig.processor.groupState() == .ready, "a moment is Kafka's daily business")
    try await rig.advance(by: .seconds(5))
    #expect(await rig.processor.groupState() == .notReady(cause: "\(one) has no leader (and 1 more)"))
    // Another member's.
    rig.source.leaderless = [.events(2)]
    #expect(await rig.processor.groupState() == .ready)
    await rig.drain()
  }

  @Test func whatCannotBeAskedAboutIsNoSilence() async throws {
    let rig = try await rig(Calls())
    rig.source.silence = KafkaError(.timedOut, detail: "nobody answers")
    try await surveys(6, rig)
    #expect(await rig.processor.groupState() == .ready && lines(rig).isEmpty)
    await rig.drain()
  }

  @Test func aQuietTopicAndOneThatIsPausedAreInOrder() async throws {
    let calls = Calls()
    let rig = try await rig(calls)
    try await surveys(6, rig)
    #expect(await rig.processor.groupState() == .ready)
    calls.fault = { _ in throw ConsumerFailure.transient("told-to", detail: "told to") }
    for number in 0..<100 { rig.put(.of(.sample(number + 10, of: "user-\(number)"))) }
    try await rig.untilIdle()
    #expect(rig.source.paused == [one])
    try await surveys(3, rig)
    #expect(rig.source.paused == [one])
    #expect(await rig.processor.groupState() == .ready)
    await rig.drain()
  }

  /// Whether a partition counts as silent after three questions that were answered so.
  private func isSilent(_ extent: PartitionExtent, next: Int64?, fetchedEnd: Int64?, isAwaited: Bool = true) -> Bool {
    var health = FetchHealth()
    for _ in 1...3 { health.answered(extent, next: next, fetchedEnd: fetchedEnd, isAwaited: isAwaited) }
    return health.silentEnd(next: next) != nil
  }

  @Test func onlyWhatWouldHaveToBeFetchedIsMissed() {
    let extent = PartitionExtent(first: 0, end: 9, firstNewer: [:])
    #expect(isSilent(extent, next: 5, fetchedEnd: 5))
    #expect(isSilent(extent, next: nil, fetchedEnd: nil))
    // Marks of transactions are behind the last record, and are fetched.
    #expect(!isSilent(extent, next: 5, fetchedEnd: 9))
    // As long as there is more to take, librdkafka need not fetch any.
    #expect(!isSilent(extent, next: 5, fetchedEnd: 5, isAwaited: false))
    // All has been deleted.
    #expect(!isSilent(PartitionExtent(first: 9, end: 9, firstNewer: [:]), next: nil, fetchedEnd: nil))
  }
}
