import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import TestSupport
import Testing

/// Erasures from the record on the topic to the offset that is committed.
@Loop @Suite(.timeLimit(.minutes(5))) struct EraserProcessingTests {
  @Test func aTargetThatRefusesForAnHourHoldsUpNobodyElseAndIsSeenAndTheErasureEndsComplete() async throws {
    var (rig, restarts) = (try await EraserRig(), 0)
    rig.shop.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(.sample(1, .accountDelete))
    try await rig.untilFailed(1)
    for minute in 1...60 {
      try await rig.process.advance(by: .seconds(60))
      try await rig.untilFailed(1 + minute + restarts)
      // Everybody else, of the same partition.
      try await rig.process.send(.sample(1 + minute, of: "person-\(minute)", .consentRevoked))
      try await rig.untilSaid(minute)
      guard minute.isMultiple(of: 20) else { continue }
      #expect(await rig.incomplete() == "1")
      #expect(try await rig.open() == ["event-1 shop failed not-now"])
      let open = try #require(try await rig.process.store.openErasures(by: .dataEraser, after: nil, limit: 1).first)
      #expect(open.since == ProcessorRig.now && open.attempts == 1 + minute + restarts)
      if minute == 40 {
        #expect(rig.process.captured.lines.contains { $0.contains("is tried again and again") })
        // Another process goes on with it, and says the same.
        await rig.process.stop()
        rig = try await EraserRig(after: rig)
        restarts = 1
        try await rig.untilFailed(42)
      }
    }
    #expect(rig.process.committed() ?? 0 == 0, "who begins anew finds it")
    #expect(rig.search.orders.count { $0.event.text == "event-1" } == 1, "what is done is not done again")

    rig.shop.failure = nil
    try await rig.process.advance(by: .seconds(60))
    try await rig.untilSaid(61)
    #expect(try rig.said().last == "event-1 account-erased: shop erased, search erased")
    #expect(await rig.incomplete() == "0")
    #expect(try await rig.open() == [])
    await rig.process.drain()
    #expect(rig.process.committed() == 61)
  }
}
