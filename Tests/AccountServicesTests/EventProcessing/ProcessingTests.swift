import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// From a record to its effect.
@Loop @Suite(.timeLimit(.minutes(30))) struct ProcessingTests {
  private let outcomes = Topic.outcomes.name

  @Test func anEventIsProcessedSettledAnnouncedAndThenCommitted() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    rig.log.isHolding = true
    try await rig.send(.sample(1))
    #expect(calls.events == ["event-1"])
    #expect(rig.metric("siwa_consumer_announcements_waiting") == "1")
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == nil)
    rig.log.release()
    try await rig.untilIdle()
    #expect(rig.cluster.appended(on: outcomes).count == 1)
    #expect(rig.metric("siwa_consumer_announcements_waiting") == "0")
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 1)
    #expect(rig.metric(#"siwa_consumer_events_total{consumer="sample",outcome="done"}"#) == "1")
    await rig.drain()
  }

  @Test func aLocalConsumerIsNotAskedBeforeHowThingsStandAndIsWrittenInGroups() async throws {
    let consumer = EventConsumer.local(
      "sample", outcomes: ["done"], interest: { _ in Interest(severity: 0, yieldsTo: []) },
      decide: { _ in Decision("done") })
    let rig = try await ProcessorRig(consumer)
    try await rig.assign(0)
    for (number, name) in ["ada", "bob", "cleo"].enumerated() { rig.put(.of(.sample(number, of: name))) }
    try await rig.untilIdle()
    #expect(rig.store.counts[.standings] == nil)
    #expect(rig.store.counts[.settle] == 1)
    await rig.drain()
    #expect(rig.committed() == 3)
  }

  @Test func theTopicFromItsStartAgainCallsNobody() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1), .sample(2, of: "bob"), .sample(3))
    await first.drain()
    #expect(calls.events.count == 3)
    first.cluster.committed = [:]
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    try await second.assign(0)
    await second.drain()
    #expect(calls.events.count == 3)
    #expect(second.cluster.appended(on: outcomes).count == 3)
    #expect(second.committed() == 3)
    #expect(second.metric(#"siwa_consumer_events_total{consumer="sample",outcome="repeated"}"#) == "3")
  }

  @Test func whatTheConsumerHasNothingToDoWithIsCommittedPast() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer { $0.kind == .accountDelete ? 3 : nil })
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2, .accountDelete), .sample(3))
    await rig.drain()
    #expect(calls.events == ["event-2"])
    #expect(rig.committed() == 3)
    #expect(rig.metric(#"siwa_consumer_events_total{consumer="sample",outcome="passed-over"}"#) == "2")
  }

  @Test func whatANewerEventHasMadeVoidIsNotProcessed() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    try await rig.send(.sample(2), .sample(1))
    await rig.drain()
    #expect(calls.events == ["event-2"])
    #expect(rig.committed() == 2)
    let metric = #"siwa_consumer_events_total{consumer="sample",outcome="superseded-newer-event"}"#
    #expect(rig.metric(metric) == "1")
  }

  @Test func whatTheGroupDoesNotTakeForLongIsSaidOnce() async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    try await rig.assign(0)
    rig.source.fault = KafkaError(.timedOut, detail: "told to")
    try await rig.send(.sample(1))
    func said(_ words: String) -> Int { rig.captured.lines.count { $0.contains(words) } }
    for _ in 1...30 { try await rig.advance(by: .seconds(1)) }
    #expect(said("commits fail") == 0, "a group that forms anew is no trouble")
    #expect(rig.metric("siwa_consumer_commits_failing_seconds") != "0")
    for _ in 1...60 { try await rig.advance(by: .seconds(1)) }
    #expect(said("commits fail") == 1)
    rig.source.fault = nil
    try await rig.advance(by: .seconds(1))
    #expect(said("commits succeed again") == 1 && rig.committed() == 1)
    #expect(rig.metric("siwa_consumer_commits_failing_seconds") == "0")
    await rig.drain()
  }

  /// Though what has failed is never taken, and nothing else comes.
  @Test func whoHasNothingToCommitFailsAtNothing() async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    try await rig.assign(0)
    rig.source.fault = KafkaError(.refused, detail: "told to")
    try await rig.send(.sample(1))
    for _ in 1...5 { try await rig.advance(by: .seconds(1)) }
    #expect(rig.source.commits > 3, "whatever it was, it is tried again")
    #expect(rig.metric("siwa_consumer_commits_failing_seconds") != "0")
    rig.source.lose([.events(0)])
    try await rig.advance(by: .seconds(2))
    #expect(rig.metric("siwa_consumer_commits_failing_seconds") == "0")
    await rig.stop()
  }

  @Test func asManyAreProcessedAtOnceAsMayBe() async throws {
    let (calls, gate) = (Calls(), Signal())
    calls.gate = { _ in await gate.wait() }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    for number in 0..<20 { rig.put(.of(.sample(number, of: "user-\(number)"))) }
    try await until { calls.current == 8 }
    while calls.events.count < 20 || calls.current > 0 {
      gate.fire()
      await turn()
    }
    #expect(calls.most == 8)
    await rig.drain()
    #expect(rig.committed() == 20)
  }
}
