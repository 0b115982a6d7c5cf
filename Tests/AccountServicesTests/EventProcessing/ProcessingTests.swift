import AccountEvents
import AccountServices
import AccountStore
import EventLoop
import Kafka
import TestSupport
import Testing

/// From a record to its effect.
@Loop @Suite(.timeLimit(.minutes(5))) struct ProcessingTests {
  @Test func anEventIsProcessedSettledAnnouncedForgottenAndThenCommitted() async {
    let calls = Calls()
    let rig = ProcessorRig(calls.announcing())
    await rig.assign(0)
    rig.log.isHolding = true
    await rig.send(.sample(1))
    #expect(calls.events == ["event-1"])
    #expect(rig.store.ledger.count == 1)
    await rig.advance(by: .seconds(1))
    #expect(rig.committed() == nil)
    rig.log.release()
    await turn()
    #expect(rig.cluster.appended(on: "apple.account-outcomes.v1").count == 1)
    #expect(rig.store.pending.isEmpty)
    await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 1)
    #expect(rig.metric("siwa_consumer_events_total{consumer=\"sample\",outcome=\"done\"}") == "1")
    await rig.drain()
  }

  @Test func aLocalConsumerIsNotAskedBeforeHowThingsStand() async {
    let rig = ProcessorRig(
      EventConsumer(.sample, outcomes: ["done"], interest: interest) { _ in Decision("done") } as EventConsumer)
    await rig.assign(0)
    await rig.send(.sample(1), .sample(2, of: "bob"), .sample(3, of: "cleo"))
    #expect(rig.store.standingCalls == 0)
    #expect(rig.store.settleCalls == 1)
    await rig.drain()
    #expect(rig.committed() == 3)
  }

  @Test func theTopicFromItsStartAgainCallsNobody() async {
    let calls = Calls()
    let first = ProcessorRig(calls.announcing())
    await first.assign(0)
    await first.send(.sample(1), .sample(2, of: "bob"), .sample(3))
    await first.drain()
    #expect(calls.events.count == 3)
    first.cluster.committed = [:]
    let second = ProcessorRig(calls.announcing(), after: first)
    await second.assign(0)
    await second.drain()
    #expect(calls.events.count == 3)
    #expect(second.cluster.appended(on: "apple.account-outcomes.v1").count == 3)
    #expect(second.committed() == 3)
  }
}

let interest: @Sendable (AccountEvent) -> Interest? = { _ in Interest(severity: 1, yieldsTo: []) }

/// What a consumer was asked.
@Loop
final class Calls {
  private(set) var events: [String] = []
  private(set) var attempts: [Int] = []
  /// Throws for an event that is to fail.
  var fault: (AccountEvent) throws -> Void = { _ in }
  /// What events wait for.
  var gate: (AccountEvent) async -> Void = { _ in }

  nonisolated init() {}

  func process(_ delivery: Delivery) async throws -> Decision {
    events.append(delivery.event.id.text)
    attempts.append(delivery.attempt)
    await gate(delivery.event)
    try fault(delivery.event)
    let announcement = Announcement(
      topic: .outcomes, key: delivery.event.account.key, value: Array(delivery.event.id.text.utf8), headers: [])
    return Decision("done", changes: [], announcements: [announcement])
  }

  /// A consumer that asks these, and says something of each event.
  func announcing() -> EventConsumer {
    EventConsumer(.sample, outcomes: ["done"], interest: interest) { delivery in try await self.process(delivery) }
  }
}
