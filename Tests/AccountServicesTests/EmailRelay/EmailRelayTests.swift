import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What is known of mail to somebody, whatever arrives in whichever order.
@Loop @Suite(.timeLimit(.minutes(30))) struct EmailRelayTests {
  private nonisolated static let address = RelayAddress("ada@privaterelay.appleid.com")

  /// What happened, at which second.
  struct Happening: Sendable, CustomTestStringConvertible {
    let name: String
    let second: Int64

    init(_ name: String, _ second: Int64) { (self.name, self.second) = (name, second) }

    var testDescription: String { "\(name)@\(second)" }

    func event() throws -> AccountEvent {
      let address = try #require(EmailRelayTests.address)
      let kind: AccountEvent.Kind =
        switch name {
        case "enabled": .emailEnabled(address, isPrivate: true)
        case "disabled": .emailDisabled(address, isPrivate: true)
        case "consent": .consentRevoked
        case "invalid": .credentialInvalid
        case "asked": .accountDeletionRequested
        default: .accountDelete
        }
      let sample = AccountEvent.sample(1)
      return AccountEvent(
        id: try #require(EventID("\(name)-\(second)")), team: sample.team, audience: sample.audience,
        subject: sample.subject, kind: kind, occurredAt: try #require(Timestamp(seconds: 1_700_000_000 + second)),
        issuedAt: sample.issuedAt)
    }
  }

  private func relay(beside other: ProcessorRig? = nil) async throws -> ProcessorRig {
    try await ProcessorRig(beside: other) { EmailRelay.consumer($0.store) }
  }

  /// Somebody is back before their erasure is done: mailers are answered what the topic says.
  @Test func anErasureThatComesLateLeavesWhatTheTopicSays() async throws {
    let relay = try await relay()
    try await relay.assign(0)
    try await relay.send(try Happening("enabled", 11).event())
    let withdrawn = try Happening("consent", 10).event()
    _ = try await relay.store.settle(
      [
        Settlement(
          of: .of(withdrawn, relay.store), by: .dataEraser, outcome: "account-erased",
          changes: [.eraseAccount(isFinal: false)])
      ], at: ProcessorRig.now)
    let said = try RelayRecord(
      decoding: try #require(relay.cluster.appended(on: Topic.emailRelay.name).last?.value))
    #expect(said.state.status == .enabled)
    #expect(try await relay.store.relayStates(of: [withdrawn.account]) == [.known(said.state)])
    await relay.drain()
  }

  /// The event says nothing of mail: what is said is what the store knows, of the account of before as of the one of now, and
  /// again where all is read once more.
  @Test func whereAPersonComesFromAnotherTeamMailGoesToTheNewAddressAlone() async throws {
    let relay = try await relay()
    try await relay.assign(0)
    let before = AccountEvent.sample(1).account
    let after = Account(team: try #require(TeamID("Z9Y8X7W6V5")), subject: try #require(AppleSubject("ada-elsewhere")))
    let address = try #require(RelayAddress("other@privaterelay.appleid.com"))
    try await relay.send(try Happening("disabled", 5).event())
    try await relay.store.transfer(
      before, to: after, address, with: AccountEvent.sample(1).audience, at: .sample(1_700_000_100_000))
    let events = try await relay.store.waitingEvents()
    #expect(events.map(\.account) == [before, after] && events.allSatisfy { $0.kind == .accountTransferred })
    for event in events { try await relay.send(event) }
    func check(_ relay: ProcessorRig) throws {
      let said = relay.cluster.appended(on: Topic.emailRelay.name).filter { $0.key != nil }
      let last = Dictionary(said.map { ($0.key, $0.value) }) { $1 }
      #expect(last.count == 2 && last[before.key] == .some(nil))
      let record = try RelayRecord(decoding: try #require(last[after.key] ?? nil))
      #expect(record.account == after && record.state.status == .disabled && record.state.address == address)
      #expect(record.state.since == (try Happening("disabled", 5).event().occurredAt))
    }
    try check(relay)
    let outcomes = try relay.cluster.appended(on: Topic.outcomes.name).suffix(2).map {
      try AccountOutcome(decoding: try #require($0.value))
    }
    #expect(outcomes.map(\.name) == [.accountTransferred, .accountTransferred])
    #expect(outcomes.map(\.account) == [before, after].map { relay.store.hash(of: $0) })
    // What is told of the new account afterwards counts, be it from before the transfer.
    let late = AccountEvent(
      id: try #require(EventID("late")), team: after.team, audience: events[0].audience, subject: after.subject,
      kind: .emailEnabled(address, isPrivate: true), occurredAt: .sample(1_700_000_050_000),
      issuedAt: .sample(1_700_000_050_000))
    try await relay.send(late)
    guard case .known(let state) = try await relay.store.relayStates(of: [after])[0] else {
      return #expect(Bool(false))
    }
    #expect(state.status == .enabled)
    await relay.drain()
  }

  /// Apple tells late of the account of before: the new one hears of it, at its own address, and once.
  @Test func whatComesLateForTheAccountOfBeforeIsSaidOfTheNewOne() async throws {
    let relay = try await relay()
    try await relay.assign(0)
    let before = AccountEvent.sample(1).account
    let after = Account(team: try #require(TeamID("Z9Y8X7W6V5")), subject: try #require(AppleSubject("ada-elsewhere")))
    let address = try #require(RelayAddress("other@privaterelay.appleid.com"))
    try await relay.send(try Happening("enabled", 5).event())
    try await relay.store.transfer(
      before, to: after, address, with: AccountEvent.sample(1).audience, at: .sample(1_700_000_100_000))
    func publish() async throws -> [Account] {
      let events = try await relay.store.waitingEvents()
      try await relay.store.removeFromOutbox(events.map(\.id))
      for event in events { try await relay.send(event) }
      return events.map(\.account)
    }
    #expect(try await publish() == [before, after])
    let late = try Happening("disabled", 7).event()
    try await relay.send(late)
    #expect(try await publish() == [after])
    try await relay.send(late)
    #expect(try await publish() == [])
    let last = relay.cluster.appended(on: Topic.emailRelay.name).last { $0.key == after.key }
    let record = try RelayRecord(decoding: try #require(last?.value))
    #expect(record.state.status == .disabled && record.state.address == address)
    #expect(record.state.since == late.occurredAt)
    #expect(try await relay.store.relayStates(of: [after]) == [.known(record.state)])
    await relay.drain()
  }

  /// The authorization of that sign-in is over, whatever Apple has told of mail since.
  @Test func whatIsKnownOfMailGoesWithAnAuthorizationThatIsFoundToBeOver() async throws {
    let relay = try await relay()
    try await relay.assign(0)
    let account = AccountEvent.sample(1).account
    try await relay.send(try Happening("enabled", 5).event(), try Happening("invalid", 1).event())
    #expect(try await relay.store.relayStates(of: [account]) == [.unknown])
    #expect(relay.cluster.appended(on: Topic.emailRelay.name).last?.value == nil)
    // Not where the person has signed in since; and a deletion covers it.
    _ = try await relay.store.recordSignIn(
      account, at: try #require(Timestamp(seconds: 1_700_000_010)), tokens: [])
    try await relay.send(try Happening("enabled", 12).event(), try Happening("invalid", 9).event())
    guard case .known = try await relay.store.relayStates(of: [account])[0] else { return #expect(Bool(false)) }
    await relay.drain()
  }

  @Test(arguments: ["disabled since 2", "erased"])
  func whatAMemberSaysTooLateIsNotTheLastThatIsSaid(_ end: String) async throws {
    let first = try await relay()
    try await first.assign(0)
    first.log.isHolding = true
    try await first.send(try Happening("enabled", 1).event())
    #expect(first.log.waiting == 2)
    // The group has given its partition to the next member, which says the same, and then what is newer.
    let second = try await relay(beside: first)
    try await second.assign(0)
    try await second.send(try Happening(end == "erased" ? "deleted" : "disabled", 2).event())
    let relays = { first.cluster.appended(on: Topic.emailRelay.name) }
    #expect(relays().count == 2)
    // Now what the first one has had in its producer arrives.
    first.log.release()
    // It finds out that it has been overtaken when it notes how far it is.
    try await first.advance(by: .seconds(1))
    #expect(relays().count == 4 && relays()[2] == relays()[0])
    if end == "erased" {
      #expect(relays()[3].value == nil)
    } else {
      let last = try RelayRecord(decoding: try #require(relays()[3].value))
      #expect(last.state.status == .disabled && last.event.text == "restated.1700000002000")
    }
    #expect(first.metric("siwa_consumer_restated_total") == "1")
    // What stands there once for each is repeated by nobody.
    #expect(first.cluster.appended(on: Topic.outcomes.name).count == 3)
    #expect(second.metric("siwa_consumer_restated_total") == "0")
    first.source.fault = KafkaError(.groupChanged, detail: "told to")
    await first.drain()
    await second.drain()
  }

  @Test(arguments: [
    ([Happening("enabled", 1), Happening("disabled", 2), Happening("enabled", 2)], "disabled since 2"),
    ([Happening("disabled", 1), Happening("consent", 2), Happening("enabled", 3)], "enabled since 3"),
    ([Happening("disabled", 1), Happening("enabled", 2), Happening("consent", 3)], "unknown"),
    ([Happening("deleted", 2), Happening("enabled", 3), Happening("disabled", 4)], "erased since 2"),
    (
      [Happening("enabled", 1), Happening("asked", 2), Happening("consent", 3), Happening("disabled", 4)],
      "erased since 2"
    ),
  ])
  func endsAlikeWhateverComesFirst(_ happenings: [Happening], _ end: String) async throws {
    for order in permutations(of: happenings) {
      let rig = try await relay()
      try await rig.assign(0)
      for happening in order { try await rig.send(try happening.event()) }
      let account = AccountEvent.sample(1).account
      let knowledge = try await rig.store.relayStates(of: [account]).first
      let text: String? =
        switch knowledge {
        case .known(let state): "\(state.status.rawValue) since \(state.since.milliseconds / 1000 - 1_700_000_000)"
        case .erased(let since): "erased since \(since.milliseconds / 1000 - 1_700_000_000)"
        case .unknown: "unknown"
        case nil: nil
        }
      #expect(text == end, "\(order.map(\.testDescription))")
      // Whoever follows the compacted topic comes to the same.
      let last = rig.cluster.appended(on: Topic.emailRelay.name).last?.value
      let record = try last.map { try RelayRecord(decoding: $0) }
      #expect(
        record.map { "\($0.state.status.rawValue) since \(($0.state.since.milliseconds / 1000) - 1_700_000_000)" }
          ?? "nothing"
          == (end.hasPrefix("e") && !end.hasPrefix("erased") || end.hasPrefix("disabled") ? end : "nothing"))
      await rig.drain()
    }
  }

  @Test func knowsWhoHasSignedInAgainAfterADeletion() async throws {
    let rig = try await relay()
    try await rig.assign(0)
    try await rig.send(try Happening("enabled", 1).event(), try Happening("deleted", 2).event())
    let account = AccountEvent.sample(1).account
    let time = try #require(Timestamp(seconds: 1_700_000_003))
    _ = try await rig.store.recordSignIn(account, at: time, tokens: [])
    try await rig.send(try Happening("enabled", 4).event())
    #expect(rig.cluster.appended(on: Topic.emailRelay.name).map { $0.value == nil } == [false, true, false])
    // Apple tells of the old deletion once more.
    let again = try Happening("deleted", 2).event()
    let other = AccountEvent(
      id: try #require(EventID("again")), team: again.team, audience: again.audience, subject: again.subject,
      kind: again.kind, occurredAt: again.occurredAt, issuedAt: again.issuedAt)
    try await rig.send(other)
    guard case .known(let state) = try await rig.store.relayStates(of: [account]).first else {
      Issue.record("the new account is gone")
      return
    }
    #expect(state.status == .enabled)
    let last = try AccountOutcome(decoding: try #require(rig.cluster.appended(on: Topic.outcomes.name).last?.value))
    #expect(last.cause.id.text == "again" && last.reason == .supersededByNewerEvent && last.consumer == "email-relay")
    #expect(rig.cluster.appended(on: Topic.emailRelay.name).count == 3, "nothing is said of the state")
    await rig.drain()
  }

  private func permutations(of items: [Happening]) -> [[Happening]] {
    guard items.count > 1 else { return [items] }
    return items.indices.flatMap { index in
      var rest = items
      let first = rest.remove(at: index)
      return permutations(of: rest).map { [first] + $0 }
    }
  }
}
