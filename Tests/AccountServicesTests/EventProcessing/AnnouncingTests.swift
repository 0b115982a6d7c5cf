import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What follows from an event is announced, whenever a process ends; and a second time only where nobody can know.
@Loop @Suite(.timeLimit(.minutes(30))) struct AnnouncingTests {
  func said(_ rig: ProcessorRig) -> [String] {
    rig.cluster.appended(on: Topic.outcomes.name).map { String(decoding: $0.value ?? [], as: UTF8.self) }
  }

  private func count(_ outcome: String, _ rig: ProcessorRig) -> String? {
    rig.metric("siwa_consumer_events_total{consumer=\"sample\",outcome=\"\(outcome)\"}")
  }

  /// Announces all that there is to know of a settlement.
  func telling() -> EventConsumer {
    var consumer = EventConsumer.local(
      "sample", outcomes: ["done"], interest: { _ in Interest(severity: 0, yieldsTo: []) },
      decide: { Decision("done", detail: "of \($0.event.id)", changes: []) })
    consumer.announce = { event, account, entry in
      let text = "\(event.id) \(account) \(entry.outcome) \(entry.detail) \(entry.at.milliseconds)"
      return [Announcement(topic: .outcomes, key: event.account.key, value: Array(text.utf8), headers: [])]
    }
    return consumer
  }

  @Test func whoIsKilledBeforeTheAnnouncementLeavesTheSameOneToTheNext() async throws {
    let first = try await ProcessorRig(telling())
    try await first.assign(0)
    first.log.isHolding = true
    try await first.send(.sample(1))
    first.kill()
    await first.stop()
    let second = try await ProcessorRig(telling(), beside: first)
    try await second.advance(by: .seconds(600))
    try await second.assign(0)
    await second.drain()
    let event = AccountEvent.sample(1)
    let hash = second.store.hash(of: event.account)
    #expect(said(second) == ["event-1 \(hash) done of event-1 1800000000000"], "as it was to be said at that time")
    #expect(count("repeated", second) == "1" && count("done", second) == "0" && second.committed() == 1)
  }

  /// An event that waited since before a rotation of the hashing key is announced under the key of now.
  @Test func anAnnouncementBearsTheHashUnderTheNewestKey() async throws {
    let rig = try await ProcessorRig(telling())
    rig.store.beforeSettling = { _ throws(AccountStoreError) in throw AccountStoreError(.unavailable, "not yet") }
    try await rig.assign(0)
    rig.put(.of(.sample(1)))
    try await rig.untilIdle()
    let former = rig.store.hash(of: AccountEvent.sample(1).account)
    try await rig.file.rotateHashKey()
    rig.store.beforeSettling = { _ in }
    try await rig.advance(by: .seconds(60))
    await rig.drain()
    let hash = rig.store.hash(of: AccountEvent.sample(1).account)
    #expect(hash != former && hash == rig.store.newest(of: former) && hash.key != nil)
    #expect(said(rig).map { $0.split(separator: " ")[1] } == ["\(hash)"])
    #expect(rig.committed() == 1)
  }

  @Test func whatWasAnnouncedIsNotAgainThoughAnEarlierEventStillWaits() async throws {
    let calls = Calls()
    calls.fault = { if $0.id.text == "event-1" { throw ConsumerFailure.transient("busy") } }
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    for number in 1...9 { first.put(.of(.sample(number, of: "user-\(number)"))) }
    try await first.untilIdle()
    await first.drain()
    #expect(first.committed() ?? 0 == 0)
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    try await second.assign(0)
    #expect(count("repeated", second) == "8")
    #expect(said(second).count == 8)
    calls.fault = { _ in }
    try await second.advance(by: .seconds(60))
    await second.drain()
    #expect(said(second).count == 9 && second.committed() == 9)
  }

  @Test func aSecondRecordOfAnEventIsNotAnnounced() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(1), .sample(2))
    await rig.drain()
    #expect(said(rig) == ["event-1", "event-2"] && calls.events == ["event-1", "event-2"])
    #expect(rig.committed() == 3)
  }

  @Test func whatWasVoidIsAnnouncedInTheSameWay() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(2))
    first.log.isHolding = true
    try await first.send(.sample(1))
    first.kill()
    await first.stop()
    var rig = try await ProcessorRig(calls.consumer(), beside: first)
    try await rig.advance(by: .seconds(600))
    try await rig.assign(0)
    await rig.drain()
    #expect(rig.committed() == 2 && calls.events == ["event-2"])
    let outcomes = try said(rig).filter { $0 != "event-2" }.map { try AccountOutcome(decoding: Array($0.utf8)) }
    let event = AccountEvent.sample(1)
    let expected = AccountOutcome(
      account: rig.store.hash(of: event.account), name: .noEffect, reason: .supersededByNewerEvent,
      cause: AccountOutcome.Cause(event), consumer: "sample", doneAt: ProcessorRig.now)
    #expect(outcomes == [expected], "as it was to be said at that time")

    // From the start of the topic, nothing is said again.
    let count = said(rig).count
    rig.cluster.committed = [:]
    rig = try await ProcessorRig(calls.consumer(), beside: rig)
    try await rig.assign(0)
    await rig.drain()
    #expect(said(rig).count == count && rig.committed() == 2)
  }

  @Test func whoAnnouncesNothingDoesNotSayThatAnEventWasVoid() async throws {
    let consumer = EventConsumer.local(
      "sample", outcomes: ["done"], interest: { _ in Interest(severity: 0, yieldsTo: []) },
      decide: { _ in Decision("done") })
    let rig = try await ProcessorRig(consumer)
    try await rig.assign(0)
    try await rig.send(.sample(2), .sample(1))
    await rig.drain()
    #expect(said(rig).isEmpty && rig.committed() == 2)
  }

  @Test func anUncertainWriteInAReplayIsAnnounced() async throws {
    let calls = Calls()
    calls.fault = { if $0.id.text == "event-1" { throw ConsumerFailure.permanent("not-ours") } }
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1), .sample(2, of: "bob"))
    await first.drain()
    // Somebody has the group read all of it again, and the first can be processed now.
    first.cluster.committed = [:]
    calls.fault = { _ in }
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    var uncertain = 1
    second.store.after = { call throws(AccountStoreError) in
      guard call == .settle, uncertain > 0 else { return }
      uncertain -= 1
      throw AccountStoreError(.uncertain, "told to")
    }
    try await second.assign(0)
    try await second.advance(by: .seconds(5))
    await second.drain()
    #expect(said(second) == ["event-2", "event-1"])
  }

  @Test func whereFewerRecordsAreThereThanWereAnnouncedTheyAreOthers() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1), .sample(2, of: "bob"), .sample(3, of: "cleo"))
    await first.drain()
    // The topic is made anew, and the broker has dropped what the group had committed.
    first.cluster.loseRecords(of: .events(0), from: 0)
    first.cluster.committed = [:]
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    second.log.isHolding = true
    try await second.assign(0)
    try await second.send(.sample(11), .sample(12))
    second.kill()
    await second.stop()
    let third = try await ProcessorRig(calls.consumer(), beside: second)
    try await third.assign(0)
    await third.drain()
    #expect(said(third) == ["event-1", "event-2", "event-3", "event-11", "event-12"])
  }

  // MARK: Compacted topics

  @Test func anOldEventThatIsAnnouncedAgainSaysWhatIsTrueNow() async throws {
    let first = try await RelayRig.relay()
    try await first.assign(0)
    first.log.isHolding = true
    try await first.send(try RelayRig.mail(1, isEnabled: true))
    first.kill()
    await first.stop()
    // A later one comes by the queue of retries, to another member.
    let second = try await RelayRig.relay(beside: first)
    second.source.assign([TopicPartition(Topic.retries(of: .emailRelay).name, 0)])
    let later = KafkaRecord.of(try RelayRig.mail(2, isEnabled: false))
    second.put(
      KafkaRecord(
        topic: Topic.retries(of: .emailRelay).name, key: later.key, value: later.value, headers: later.headers))
    try await second.untilIdle()
    try await second.assign(0)
    await second.drain()
    #expect(try Set(RelayRig.states(second)) == ["disabled"], "the first is overtaken before anybody has said it")
    #expect(second.cluster.appended(on: Topic.outcomes.name).count == 2)
  }

  @Test func afterAnEventOfTheRetriesItIsSaidAgainWhatIsTrue() async throws {
    let rig = try await RelayRig.relay()
    rig.source.assign([TopicPartition(Topic.retries(of: .emailRelay).name, 0)])
    try await rig.untilIdle()
    let record = KafkaRecord.of(try RelayRig.mail(1, isEnabled: true))
    rig.put(
      KafkaRecord(
        topic: Topic.retries(of: .emailRelay).name, key: record.key, value: record.value, headers: record.headers))
    try await rig.untilIdle()
    #expect(try RelayRig.states(rig).count == 2 && rig.metric("siwa_consumer_restated_total") == "1")
    // Once what another member may have under way has come, or never does.
    try await rig.advance(by: .seconds(29))
    #expect(rig.metric("siwa_consumer_restated_total") == "1")
    try await rig.advance(by: .seconds(1))
    #expect(try RelayRig.states(rig) == ["enabled", "enabled", "enabled"])
    #expect(rig.metric("siwa_consumer_restated_total") == "2")
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 1)
    await rig.drain()
  }

  @Test func aReportThatComesForAPartitionThatIsGoneHasTheTruthSaidAfterIt() async throws {
    let first = try await RelayRig.relay()
    try await first.assign(0)
    first.log.isHolding = true
    try await first.send(try RelayRig.mail(1, isEnabled: true))
    first.source.lose([.events(0)])
    try await first.untilIdle()
    let second = try await RelayRig.relay(beside: first)
    try await second.assign(0)
    try await second.send(try RelayRig.mail(2, isEnabled: false))
    await second.drain()
    first.log.release()
    try await first.untilIdle()
    #expect(try RelayRig.states(first) == ["enabled", "disabled", "enabled", "disabled"])
    #expect(first.metric("siwa_consumer_restated_total") == "1")
    await first.drain()
  }

  @Test func whatWasSaidInTimeIsNotSaidAgainWhereThePartitionGoes() async throws {
    let first = try await RelayRig.relay()
    try await first.assign(0)
    try await first.send(try RelayRig.mail(1, isEnabled: true))
    first.source.lose([.events(0)])
    try await first.untilIdle()
    let second = try await RelayRig.relay(beside: first)
    try await second.assign(0)
    try await second.send(try RelayRig.mail(2, isEnabled: false))
    for rig in [first, second] { await rig.drain() }
    #expect(try RelayRig.states(first) == ["enabled", "disabled"])
    for rig in [first, second] { #expect(rig.metric("siwa_consumer_restated_total") == "0") }
  }

  // MARK: Groups

  @Test func theNextGroupIsWrittenWhileTheLastOneStillIs() async throws {
    let gate = Signal()
    let rig = try await ProcessorRig(telling())
    rig.store.gate = { if $0 == .settle { await gate.wait() } }
    try await rig.assign(0)
    for number in 0..<5 { rig.put(.of(.sample(number, of: "user-\(number)"))) }
    try await until { rig.store.settling == 1 }
    for number in 5..<10 { rig.put(.of(.sample(number, of: "user-\(number)"))) }
    try await until { rig.store.settling == 2 }
    rig.store.gate = { _ in }
    try await until {
      gate.fire()
      return rig.store.settling == 0
    }
    await rig.drain()
    #expect(rig.committed() == 10 && said(rig).count == 10)
  }

  @Test func oneBrokenRowDoesNotHoldUpTheOthersOfItsGroup() async throws {
    let rig = try await ProcessorRig(telling())
    var sizes: [Int] = []
    rig.store.beforeSettling = { settlements throws(AccountStoreError) in
      if !settlements.isEmpty { sizes.append(settlements.count) }
      if settlements.contains(where: { $0.event.id.text == "event-7" }) {
        throw AccountStoreError(.sealBroken, "told to")
      }
    }
    try await rig.assign(0)
    for number in 0..<32 { rig.put(.of(.sample(number, of: "user-\(number)"))) }
    try await rig.untilIdle()
    #expect(said(rig).count == 31)
    #expect(sizes.count <= 2 * 5 + 1, "it is halved: \(sizes)")
    #expect(rig.metric(#"siwa_consumer_retries_total{consumer="sample",cause="store-seal-broken"}"#) == "1")
    rig.store.beforeSettling = { _ in }
    try await rig.advance(by: .seconds(1))
    await rig.drain()
    #expect(said(rig).count == 32 && rig.committed() == 32)
  }

  @Test(arguments: [true, false]) func aRestartDoesNotPostponeGivingUp(isWaiting: Bool) async throws {
    let calls = Calls()
    calls.fault = { _ in
      throw isWaiting ? ConsumerFailure.waiting("closed", for: .seconds(60)) : .transient("closed")
    }
    var rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    rig.put(.of(.sample(1)), age: .seconds(8 * 86_400))
    try await rig.untilIdle()
    for _ in 1...5 {
      for _ in 1...11 { try await rig.advance(by: .seconds(60)) }
      #expect(rig.cluster.appended(on: Topic.deadLetters(of: "sample").name).isEmpty)
      await rig.drain()
      rig = try await ProcessorRig(calls.consumer(), beside: rig)
      try await rig.assign(0)
    }
    for _ in 1...6 { try await rig.advance(by: .seconds(60)) }
    #expect(rig.cluster.appended(on: Topic.deadLetters(of: "sample").name).count == 1)
    await rig.drain()
    #expect(rig.committed() == 1)
  }
}
