import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// The store, the log and the room for records: away, and back.
@Loop @Suite(.timeLimit(.minutes(30))) struct OutageTests {
  @Test(arguments: [WatchedStore.Call.standings, .settle, .claim])
  func eventsWaitForTheStoreAndNothingIsLost(_ call: WatchedStore.Call) async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    let away = AccountStoreError(.unavailable, "told to")
    rig.store.before = { made throws(AccountStoreError) in if made == call { throw away } }
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2, of: "bob"))
    #expect(rig.processor.storeState() == .ready, "it has failed once")
    for _ in 0..<3 { try await rig.advance(by: .seconds(5)) }
    #expect(rig.committed() ?? 0 == 0)
    #expect(rig.processor.storeState() == .notReady(cause: "the account store fails again and again: told to"))
    #expect(rig.captured.lines.contains { $0.contains("the account store fails") })
    rig.store.before = { _ in }
    try await rig.advance(by: .seconds(5))
    #expect(rig.processor.storeState() == .ready)
    await rig.drain()
    #expect(Set(calls.events) == ["event-1", "event-2"] && calls.events.count == 2)
    #expect(rig.committed() == 2)
    #expect(rig.cluster.appended.filter { $0.topic.contains("dead-letters") }.isEmpty)
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 2)
  }

  @Test(arguments: [WatchedStore.Call.settle, .claim])
  func aWriteThatMayHaveHappenedIsFoundOut(_ call: WatchedStore.Call) async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    rig.store.after = { made throws(AccountStoreError) in
      if made == call { throw AccountStoreError(.uncertain, "told to") }
    }
    try await rig.assign(0)
    try await rig.send(.sample(1))
    rig.store.after = { _ in }
    try await rig.advance(by: .seconds(5))
    await rig.drain()
    #expect(calls.events == ["event-1"])
    #expect(rig.committed() == 1)
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 1)
    #expect(rig.metric("siwa_consumer_announcements_waiting") == "0")
  }

  @Test func whatTheStoreRefusesFailsAlone() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    var settled = 0
    rig.store.before = { call throws(AccountStoreError) in
      guard call == .settle else { return }
      settled += 1
      if settled <= 2 { throw AccountStoreError(.sealBroken, "told to") }
    }
    try await rig.assign(0)
    // The group fails, then the first of it alone.
    try await rig.send(.sample(1), .sample(2, of: "bob"))
    #expect(rig.metric(#"siwa_consumer_retries_total{consumer="sample",cause="store-seal-broken"}"#) == "1")
    try await rig.advance(by: .seconds(1))
    await rig.drain()
    #expect(calls.attempts.sorted() == [1, 1, 2])
    #expect(rig.committed() == 2)
  }

  @Test func aConsumerThatMissesTheStoreWaitsAndIsNotCounted() async throws {
    let calls = Calls()
    calls.fault = { _ in throw AccountStoreError(.unavailable, "told to") }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    try await rig.send(.sample(1))
    #expect(rig.store.counts[.count] == nil)
    calls.fault = { _ in }
    try await rig.advance(by: .seconds(1))
    await rig.drain()
    #expect(rig.committed() == 1)
  }

  @Test func whatIsToBeSaidWaitsForTheLogInItsOrder() async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    rig.log.fault = { _ in EventLogError(.unavailable, reason: "sample", detail: "told to") }
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2))
    try await rig.advance(by: .milliseconds(100))
    #expect(rig.metric("siwa_consumer_announcements_waiting") == "1")
    rig.log.fault = { _ in nil }
    try await rig.advance(by: .milliseconds(200))
    await rig.drain()
    let said = rig.cluster.appended(on: Topic.outcomes.name).map { String(decoding: $0.value ?? [], as: UTF8.self) }
    #expect(said == ["event-1", "event-2"])
    #expect(rig.committed() == 2)
  }

  @Test func aFullPartitionIsPausedAndTheOthersGoOn() async throws {
    let (calls, gate) = (Calls(), Signal())
    calls.gate = { event in if event.subject.text == "ada" { await gate.wait() } }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0, 1)
    for number in 0..<100 { rig.put(.of(.sample(number))) }
    try await until { (rig.metric("siwa_consumer_in_flight").flatMap(Int.init) ?? 0) >= 32 }
    try await rig.untilIdle()
    #expect(rig.source.paused.isEmpty, "what goes on may have room again in a moment")
    try await rig.advance(by: .milliseconds(500))
    #expect(rig.source.paused == [.events(0)])
    #expect(rig.metric("siwa_consumer_partitions_paused") == "1")
    for number in 100..<200 { rig.put(.of(.sample(number, of: "bob-\(number)")), 1) }
    try await until { calls.events.count { $0 != "event-0" } == 100 }
    #expect((rig.metric("siwa_consumer_in_flight").flatMap(Int.init) ?? 0) <= 64)
    calls.gate = { _ in }
    gate.fire()
    try await until { Set(calls.events).count == 200 }
    await rig.drain()
    #expect(rig.source.paused == [.events(0), .events(1)])
    #expect(rig.committed(0) == 100 && rig.committed(1) == 100)
  }

  @Test func whatWaitsForItsNextAttemptTakesNobodysRoom() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    calls.fault = { event in if event.subject.text.hasPrefix("ada") { throw ConsumerFailure.transient("busy") } }
    try await rig.assign(0)
    // More than may be under way at once, in the partition and in all.
    for number in 0..<54 {
      rig.put(.of(.sample(number, of: "ada-\(number % 50)")))
      rig.put(.of(.sample(100 + number, of: "bob-\(number)")))
    }
    try await until { calls.events.count { $0.count == 9 } == 54 }
    try await rig.untilIdle()
    #expect(rig.metric("siwa_consumer_waiting") == "54" && rig.source.paused.isEmpty)
    calls.fault = { _ in }
    try await rig.advance(by: .seconds(1))
    try await rig.advance(by: .seconds(1))
    #expect(rig.metric("siwa_consumer_waiting") == "0" && rig.metric("siwa_consumer_in_flight") == "0")
    await rig.drain()
    #expect(rig.committed() == 108)
  }

  @Test func wherePartitionsHoldTooMuchThatWaitsNothingMoreIsReadAndThatIsSaidOnce() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    calls.fault = { event in if event.subject.text == "ada" { throw ConsumerFailure.transient("busy") } }
    try await rig.assign(0, 1)
    for number in 0..<200 { rig.put(.of(.sample(number))) }
    try await until { rig.source.paused == [.events(0)] }
    try await rig.advance(by: .seconds(5))
    #expect(rig.metric("siwa_consumer_partitions_paused") == "1")
    // As many as may wait, and what was read with them.
    #expect((64..<128).contains(rig.metric("siwa_consumer_waiting").flatMap(Int.init) ?? 0))
    #expect(rig.captured.lines.count { $0.contains("too many events wait") } == 1)
    rig.put(.of(.sample(200, of: "bob")), 1)
    try await until { calls.events.contains("event-200") }
    calls.fault = { _ in }
    try await rig.advance(by: .seconds(60))
    try await until { Set(calls.events).count == 201 }
    #expect(rig.captured.lines.contains { $0.contains("a partition is read on") })
    await rig.drain()
    #expect(rig.committed(0) == 200 && rig.committed(1) == 1)
  }

  @Test func partitionsThatGoTakeWhatWaitsWithThem() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    calls.fault = { _ in throw ConsumerFailure.transient("busy") }
    try await rig.assign(0, 1)
    for number in 0..<300 { rig.put(.of(.sample(number, of: "user-\(number % 10)")), Int32(number % 10 % 2)) }
    try await until { rig.source.paused.count == 2 }
    try await rig.untilIdle()
    rig.source.lose([.events(0)])
    try await rig.untilIdle()
    #expect(rig.metric("siwa_consumer_waiting") == rig.metric("siwa_consumer_in_flight"))
    rig.source.lose([.events(1)])
    try await rig.untilIdle()
    #expect(rig.metric("siwa_consumer_waiting") == "0" && rig.metric("siwa_consumer_in_flight") == "0")
    calls.fault = { _ in }
    try await rig.assign(0, 1)
    try await until { rig.metric("siwa_consumer_in_flight") == "0" && Set(calls.events).count == 300 }
    await rig.drain()
    #expect(rig.committed(0) == 150 && rig.committed(1) == 150)
  }

  @Test func nothingIsReadWhileAllIsFull() async throws {
    let (calls, gate) = (Calls(), Signal())
    calls.gate = { _ in await gate.wait() }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0, 1, 2, 3)
    for number in 0..<400 { rig.put(.of(.sample(number, of: "user-\(number)")), Int32(number % 4)) }
    try await until { calls.current == 8 }
    // One partition has its share, and then there is no room for others.
    for _ in 1...2 { try await rig.advance(by: .milliseconds(500)) }
    #expect(rig.metric("siwa_consumer_in_flight") == "64")
    #expect(rig.source.paused.count == 4)
    // Whoever is full still hears of partitions.
    rig.source.lose([.events(0)])
    await turn()
    #expect(!rig.source.paused.contains(.events(3)))
    calls.gate = { _ in }
    gate.fire()
    try await until {
      gate.fire()
      return calls.current == 0 && Set(calls.events).count >= 300
    }
    await rig.drain()
    #expect([1, 2, 3].map { rig.committed($0) } == [100, 100, 100])
  }
}
