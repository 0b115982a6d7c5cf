import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What is announced of events where processes end in the middle, partitions are claimed by others or begin anew, and the
/// store fails at that moment.
@Loop @Suite(.timeLimit(.minutes(30))) struct AnnouncingEdgesTests {
  private func said(_ rig: ProcessorRig) -> [String] {
    rig.cluster.appended(on: Topic.outcomes.name).map { String(decoding: $0.value ?? [], as: UTF8.self) }
  }

  @Test func aTopicMadeAnewWithMoreRecordsThanWereAnnouncedLosesNoAnnouncement() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1), .sample(2, of: "bob"), .sample(3, of: "cleo"))
    await first.drain()
    first.cluster.loseRecords(of: .events(0), from: 0)
    first.cluster.committed = [:]
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    second.log.isHolding = true
    for number in 11...16 { second.put(.of(.sample(number, of: "user-\(number)"))) }
    try await second.assign(0)
    try await second.untilIdle()
    #expect(second.log.waiting == 6)
    second.kill()
    await second.stop()
    let third = try await ProcessorRig(calls.consumer(), beside: second)
    try await third.assign(0)
    await third.drain()
    #expect(third.committed() == 6)
    for number in 11...16 { #expect(said(third).contains("event-\(number)")) }
  }

  @Test func whatAReplaySettlesFirstIsAnnouncedThoughTheProcessIsKilledBefore() async throws {
    let calls = Calls()
    calls.fault = { if $0.id.text == "event-1" { throw ConsumerFailure.permanent("not-ours") } }
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1), .sample(2, of: "bob"))
    await first.drain()
    first.cluster.committed = [:]
    calls.fault = { _ in }
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    second.log.isHolding = true
    try await second.assign(0)
    #expect(second.log.waiting == 1)
    second.kill()
    await second.stop()
    let third = try await ProcessorRig(calls.consumer(), beside: second)
    try await third.assign(0)
    await third.drain()
    #expect(said(third) == ["event-2", "event-1"])
    #expect(third.committed() == 2)
  }

  @Test func aProcessKilledWhileItReadsAgainDoesNotForgetWhatWasAnnouncedBeyond() async throws {
    let calls = Calls()
    calls.fault = { if $0.id.text == "event-1" { throw ConsumerFailure.transient("busy") } }
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    for number in 1...20 { first.put(.of(.sample(number, of: "user-\(number)"))) }
    try await first.untilIdle()
    await first.drain()
    #expect(said(first).count == 19)
    let second = try await ProcessorRig(
      calls.consumer(), beside: first,
      bounds: ProcessingBounds(
        inFlight: 4, inFlightPerPartition: 4, waiting: 8, waitingPerPartition: 8, concurrency: 1,
        retries: RetryPace(first: .seconds(1), longest: .seconds(60)), alarmAfter: 3, giveUpAfter: .seconds(1_000_000),
        clockTolerance: .seconds(121)))
    let gate = Signal()
    var asked = 0
    second.store.gate = { call in
      guard call == .standings else { return }
      asked += 1
      if asked > 1 { await gate.wait() }
    }
    second.source.most = 4
    second.source.assign([.events(0)])
    // It has asked about the first few, and waits for the answer about the next.
    try await until { asked > 1 }
    try await until {
      second.alarm.advance(by: .milliseconds(300))
      return second.store.counts[.settle] ?? 0 > 0 && second.store.settling == 0
    }
    #expect(second.source.position(of: .events(0)) ?? 0 < 15)
    second.kill()
    second.store.gate = { _ in }
    gate.fire()
    await second.stop()
    let third = try await ProcessorRig(calls.consumer(), beside: second)
    try await third.assign(0)
    await third.drain()
    // Only what it had in its hands when it was killed is said again.
    #expect(Set(said(third).dropFirst(19)).isSubset(of: ["event-5", "event-6", "event-7", "event-8"]))
  }

  // MARK: Zombies on a compacted topic

  /// A first member whose older news has come behind the second's, and who does not know that its partition is gone.
  private func zombie() async throws -> (ProcessorRig, ProcessorRig) {
    let first = try await RelayRig.relay()
    try await first.assign(0)
    first.log.isHolding = true
    try await first.send(try RelayRig.mail(1, isEnabled: true))
    let second = try await RelayRig.relay(beside: first)
    try await second.assign(0)
    try await second.send(try RelayRig.mail(2, isEnabled: false))
    first.source.fault = KafkaError(.groupChanged, detail: "told to")
    first.log.release()
    await turn()
    #expect(try RelayRig.states(first).last == "enabled", "behind the newer one")
    return (first, second)
  }

  @Test func aZombieThatEndsHasTheTruthSaid() async throws {
    let (first, second) = try await zombie()
    await first.drain()
    await second.drain()
    #expect(try RelayRig.states(first).last == "disabled")
  }

  @Test func aZombieThatLearnsWhileTheStoreFailsOnceHasTheTruthSaid() async throws {
    let (first, second) = try await zombie()
    var left = 1
    first.store.before = { call throws(AccountStoreError) in
      guard call == .settle, left > 0 else { return }
      left -= 1
      throw AccountStoreError(.unavailable, "told to")
    }
    first.source.lose([.events(0)])
    try await first.untilIdle()
    for _ in 0..<10 { try await first.advance(by: .seconds(10)) }
    await second.drain()
    await first.drain()
    #expect(try RelayRig.states(first).last == "disabled")
  }

  @Test func aZombieThatLearnsHasTheTruthSaid() async throws {
    let (first, second) = try await zombie()
    first.source.lose([.events(0)])
    try await first.untilIdle()
    await second.drain()
    await first.drain()
    #expect(try RelayRig.states(first).last == "disabled")
  }

  // MARK: Begun anew

  /// Ends, where time passes meanwhile.
  private func end(_ rig: ProcessorRig, meanwhile: () -> Void) async throws {
    let isOver = Signal()
    async let end: Void = endFirst(rig, .seconds(500_000), isOver)
    await turn()
    meanwhile()
    while !isOver.isFired {
      rig.alarm.advance(by: .seconds(1))
      await turn()
    }
    await end
    await rig.stop()
  }

  @Test func theEndWaitsForLettersOfAPartitionThatHasBegunAnew() async throws {
    let calls = Calls()
    calls.fault = { if $0.id.text == "event-1" { throw ConsumerFailure.transient("busy") } }
    let rig = try await ProcessorRig(calls.consumer())
    rig.source.mayGoBack = true
    try await rig.assign(0)
    rig.put(.of(.sample(1)), age: .seconds(90))
    rig.put(.of(.sample(2, of: "bob")), age: .seconds(90))
    try await rig.untilIdle()
    let error = EventLogError(.unavailable, reason: "sample", detail: "told to")
    rig.log.fault = { _ in error }
    rig.cluster.loseRecords(of: .events(0), from: 0)
    for _ in 0..<20 where rig.metric("siwa_consumer_partitions_begun_anew_total") == "0" {
      try await rig.advance(by: .seconds(1))
    }
    #expect(rig.metric("siwa_consumer_partitions_begun_anew_total") == "1")
    try await end(rig) { rig.log.fault = { _ in nil } }
    let letters = rig.cluster.appended(on: Topic.deadLetters(of: "sample").name)
    #expect(letters.count == 1, "event-1 has neither an effect nor a dead letter")
  }

  @Test func theEndWaitsForAnnouncementsOfAPartitionThatHasBegunAnew() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    rig.source.mayGoBack = true
    try await rig.assign(0)
    let error = EventLogError(.unavailable, reason: "sample", detail: "told to")
    rig.log.fault = { _ in error }
    rig.put(.of(.sample(1)), age: .seconds(90))
    try await rig.untilIdle()
    rig.cluster.loseRecords(of: .events(0), from: 0)
    for _ in 0..<20 where rig.metric("siwa_consumer_partitions_begun_anew_total") == "0" {
      try await rig.advance(by: .seconds(1))
    }
    #expect(rig.metric("siwa_consumer_partitions_begun_anew_total") == "1")
    try await end(rig) { rig.log.fault = { _ in nil } }
    #expect(said(rig) == ["event-1"])
  }

  @Test func aHandoverOfAPartitionThatHasBegunAnewLosesNoLetters() async throws {
    let calls = Calls()
    calls.fault = { if $0.id.text == "event-1" { throw ConsumerFailure.transient("busy") } }
    let rig = try await ProcessorRig(calls.consumer())
    rig.source.mayGoBack = true
    try await rig.assign(0)
    rig.put(.of(.sample(1)), age: .seconds(90))
    try await rig.untilIdle()
    let error = EventLogError(.unavailable, reason: "sample", detail: "told to")
    rig.log.fault = { _ in error }
    rig.cluster.loseRecords(of: .events(0), from: 0)
    for _ in 0..<20 where rig.metric("siwa_consumer_partitions_begun_anew_total") == "0" {
      try await rig.advance(by: .seconds(1))
    }
    rig.source.revoke([.events(0)])
    await turn()
    for _ in 0..<30 { try await rig.advance(by: .milliseconds(200)) }
    #expect(rig.source.partitions.isEmpty)
    rig.log.fault = { _ in nil }
    for _ in 0..<30 { try await rig.advance(by: .seconds(1)) }
    await rig.drain()
    let letters = rig.cluster.appended(on: Topic.deadLetters(of: "sample").name)
    #expect(letters.count == 1, "event-1 has neither an effect nor a dead letter")
  }

  @Test func aCommitOfAPartitionThatBeganAnewDoesNotOvertakeItsClaim() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    for number in 1...3 { first.put(.of(.sample(number, of: "user-\(number)")), age: .seconds(90)) }
    try await first.untilIdle()
    await first.drain()
    // Made anew, with more records than before: only their time tells.
    first.cluster.loseRecords(of: .events(0), from: 0)
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    second.source.mayGoBack = true
    for number in 11...16 { second.put(.of(.sample(number, of: "user-\(number)")), age: .seconds(5)) }
    var claims = 0
    second.store.before = { call throws(AccountStoreError) in
      if call == .claim {
        claims += 1
        throw AccountStoreError(.unavailable, "told to")
      }
    }
    try await second.assign(0)
    for _ in 0..<5 { try await second.advance(by: .seconds(1)) }
    #expect(second.metric("siwa_consumer_partitions_begun_anew_total") == "1" && claims > 0)
    second.kill()
    await second.stop()
    let third = try await ProcessorRig(calls.consumer(), beside: second)
    third.source.mayGoBack = true
    third.log.isHolding = true
    try await third.assign(0)
    try await third.untilIdle()
    third.kill()
    await third.stop()
    let fourth = try await ProcessorRig(calls.consumer(), beside: third)
    fourth.source.mayGoBack = true
    try await fourth.assign(0)
    await fourth.drain()
    for number in 11...16 { #expect(said(fourth).contains("event-\(number)")) }
  }

  // MARK: Liveness

  @Test func oneBrokenRowDoesNotHoldUpWhatIsAnnouncedAgainForOthers() async throws {
    let first = try await RelayRig.relay()
    try await first.assign(0)
    first.log.isHolding = true
    let address = try #require(RelayRig.address)
    for number in 1...4 {
      first.put(.of(.sample(number, of: "user-\(number)", .emailEnabled(address, isPrivate: true))))
    }
    try await first.untilIdle()
    first.kill()
    await first.stop()
    let second = try await RelayRig.relay(beside: first)
    // As it is where any one of the rows asked for cannot be opened.
    second.store.before = { call throws(AccountStoreError) in
      if call == .relayStates { throw AccountStoreError(.sealBroken, "told to") }
    }
    try await second.assign(0)
    for _ in 0..<60 { try await second.advance(by: .seconds(60)) }
    #expect(second.store.counts[.relayStates] ?? 0 < 100, "asked \(second.store.counts[.relayStates] ?? 0) times")
    #expect(second.metric("siwa_consumer_in_flight") == "0")
    second.store.before = { _ in }
    try await second.advance(by: .seconds(60))
    await second.drain()
  }
}

@Loop private func endFirst(_ rig: ProcessorRig, _ patience: Duration, _ isOver: Signal) async {
  await rig.processor.end(within: patience)
  isOver.fire()
}
