import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// Partitions that come and go while events are under way.
@Loop @Suite(.timeLimit(.minutes(30))) struct HandoverTests {
  private let outcomes = Topic.outcomes.name

  @Test func whatIsBeingWorkedOnIsFinishedBeforeAPartitionGoesAndNothingElseIsBegun() async throws {
    let (calls, gate) = (Calls(), Signal())
    calls.gate = { _ in await gate.wait() }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0, 1)
    for number in 1...3 { rig.put(.of(.sample(number))) }
    rig.put(.of(.sample(4, of: "bob")), 1)
    try await until { calls.current == 2 }
    rig.source.revoke([.events(0)])
    await turn()
    #expect(rig.source.leaving == [.events(0)])
    gate.fire()
    try await until { rig.source.leaving.isEmpty }
    #expect(rig.committed() == 1)
    #expect(Set(calls.events) == ["event-1", "event-4"])
    await rig.drain()
  }

  @Test func nobodyWaitsLongForWhatTakesLongAndItsEffectIsNotDoneTwice() async throws {
    let (slow, gate, quick) = (Calls(), Signal(), Calls())
    slow.gate = { _ in await gate.wait() }
    let first = try await ProcessorRig(slow.consumer())
    try await first.assign(0)
    first.put(.of(.sample(1)))
    try await until { slow.current == 1 }
    first.source.revoke([.events(0)])
    await turn()
    try await first.advance(by: .seconds(2))
    #expect(first.source.partitions.isEmpty && first.committed() ?? 0 == 0)
    let second = try await ProcessorRig(quick.consumer(), beside: first)
    second.log.isHolding = true
    try await second.assign(0)
    try await until { second.log.waiting == 1 }
    gate.fire()
    try await until { slow.current == 0 }
    try await first.untilIdle()
    second.log.release()
    try await second.untilIdle()
    await second.drain()
    #expect(second.committed() == 1)
    #expect(second.cluster.appended(on: outcomes).count == 1)
    await first.drain()
  }

  @Test func whatALostPartitionsFormerOwnerHasDecidedIsSaidByTheNext() async throws {
    let (slow, gate, quick) = (Calls(), Signal(), Calls())
    slow.gate = { _ in await gate.wait() }
    let first = try await ProcessorRig(slow.consumer())
    try await first.assign(0)
    first.put(.of(.sample(1)))
    try await until { slow.current == 1 }
    first.source.lose([.events(0)])
    await turn()
    gate.fire()
    try await first.untilIdle()
    // It is settled, and not said: the partition is not ours.
    #expect(first.cluster.appended(on: outcomes).isEmpty)
    #expect(first.metric(#"siwa_consumer_events_total{consumer="sample",outcome="done"}"#) == "1")
    let second = try await ProcessorRig(quick.consumer(), beside: first)
    try await second.assign(0)
    await second.drain()
    #expect(quick.events.isEmpty && second.committed() == 1)
    #expect(second.cluster.appended(on: outcomes).count == 1)
    await first.drain()
  }

  @Test func whatAFormerProcessLeftToBeSaidIsSaidBeforeAnythingNewerOfTheAccountIsBegun() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    first.log.isHolding = true
    try await first.send(.sample(1), .sample(2, of: "bob"))
    #expect(calls.events.count == 2)
    await first.stop()
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    second.log.isHolding = true
    try await second.assign(0)
    try await second.send(.sample(3))
    #expect(second.log.waiting == 2 && calls.events.count == 2)
    second.log.release()
    try await second.untilIdle()
    #expect(calls.events.count == 3)
    let said = second.cluster.appended(on: outcomes).map { String(decoding: $0.value ?? [], as: UTF8.self) }
    #expect(said == ["event-1", "event-2", "event-3"])
    await second.drain()
    #expect(second.committed() == 3)
  }

  @Test func theEndFinishesWhatIsBegunAndNothingElse() async throws {
    let (calls, gate) = (Calls(), Signal())
    calls.gate = { _ in await gate.wait() }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    for number in 1...3 { rig.put(.of(.sample(number))) }
    try await until { calls.current == 1 }
    async let end: Void = rig.drain()
    await turn()
    rig.put(.of(.sample(4, of: "bob")))
    gate.fire()
    await end
    #expect(calls.events == ["event-1"])
    #expect(rig.committed() == 1)
  }

  @Test func theEndDoesNotWaitForWhatFails() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.transient("busy") }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2, of: "bob"))
    await rig.drain()
    #expect(calls.events.count == 2)
    #expect(rig.committed() ?? 0 == 0)
  }

  @Test func aCommitThatFailsIsMadeAgain() async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    try await rig.assign(0)
    rig.source.fault = KafkaError(.groupMoving, detail: "told to")
    try await rig.send(.sample(1))
    try await rig.advance(by: .seconds(1))
    #expect(rig.source.commits == 1 && rig.committed() == nil)
    rig.source.fault = nil
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 1)
    await rig.drain()
  }

  @Test func whatCannotGoOnLosesAllAndSaysSo() async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    try await rig.assign(0)
    rig.source.end = KafkaError(.fenced, detail: "told to")
    #expect(await rig.result()?.code == .fenced)
    #expect(rig.metric("siwa_consumer_in_flight") == "0")
    await rig.drain()
  }
}
