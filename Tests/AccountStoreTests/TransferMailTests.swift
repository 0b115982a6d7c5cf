import AccountEvents
import EventLoop
import Testing

@testable import AccountStore

/// What is known of mail to the two accounts of a person whose app has changed teams.
@Loop @Suite struct TransferMailTests {
  private let before = Sample.account(1)
  private let after = Transfer.account(1)
  private let third = Account(team: Sample.valid(TeamID("T3T3T3T3T3")), subject: Sample.account(3).subject)
  private nonisolated static let other = Sample.valid(ClientID("com.example.other"))

  /// People of the team before, whose identifiers are known.
  private func prepare(_ store: any AccountStore) async throws {
    try await store.fill(1...2)
    try await store.begin(Transfer.sending, with: Transfer.sent(1...2))
    try await store.begin(Transfer.receiving, with: Transfer.received(1...2))
    let results = [Transfer.identified(1), Transfer.identified(2)]
    #expect(try await store.record(results, of: Transfer.sending) == [.done, .done])
  }

  private func join(_ store: any AccountStore, byBatch: Bool = false) async throws {
    if byBatch {
      #expect(try await store.record([Transfer.found(1)], of: Transfer.receiving) == [.done])
    } else {
      let claim = TransferClaim(
        Transfer.identifier(1), to: Sample.client, address: Transfer.address(1), isPrivate: true)
      _ = try await store.recordSignIn(after, at: Sample.time(100), tokens: [], of: nil, claiming: claim)
    }
  }

  /// The app goes on to a third team, and the person with it.
  private func joinThird(_ store: any AccountStore, byBatch: Bool = false) async throws {
    let on = Sample.valid(
      TransferPlan(
        "on", .sending, team: Transfer.otherTeam, otherTeam: third.team, client: Sample.client,
        createdAt: Sample.time(101)))
    try await store.begin(on, with: [NewTransferUser(key: "1", subject: after.subject)])
    #expect(try await store.record([Transfer.identified(1, as: 7)], of: on) == [.done])
    if byBatch {
      let received = Sample.valid(
        TransferPlan(
          "received-on", .receiving, team: third.team, otherTeam: Transfer.otherTeam, client: Sample.client,
          createdAt: Sample.time(101)))
      try await store.begin(received, with: [NewTransferUser(key: "1", transferSubject: Transfer.identifier(7))])
      let found = TransferResult(1, .account(third.subject, address: Sample.address(3), isPrivate: true))
      let states = try await store.record([found], of: received, under: Transfer.lease(received), at: Sample.time(110))
      #expect(states == [.done])
    } else {
      let claim = TransferClaim(Transfer.identifier(7), to: Sample.client, address: Sample.address(3), isPrivate: true)
      _ = try await store.recordSignIn(third, at: Sample.time(110), tokens: [], of: nil, claiming: claim)
    }
  }

  /// What Apple says of mail to one of the two, as the relay settles it.
  private func said(
    _ status: RelayState.Status, of account: Account, at seconds: Int64, for client: ClientID = Sample.client,
    in store: any AccountStore
  ) -> Settlement {
    let address =
      account == before ? Sample.address(1) : account == after ? Transfer.address(1) : Sample.address(3)
    let state = RelayState(status: status, address: address, isPrivate: true, since: Sample.time(seconds))
    let event = Sample.event(
      "\(status.rawValue)-\(account.team)-\(seconds)", of: account, hash: store.hash(of: account), at: seconds,
      tie: status == .disabled ? 1 : 0, yieldsTo: [.erasure])
    return event.settled(.setRelay(state), .tellSuccessorOfMail(state, of: client))
  }

  private func state(_ status: RelayState.Status, since seconds: Int64) -> RelayKnowledge {
    .known(RelayState(status: status, address: Transfer.address(1), isPrivate: true, since: Sample.time(seconds)))
  }

  private func mail(_ store: any AccountStore) async throws -> RelayKnowledge {
    try #require(try await store.relayStates(of: [after]).first)
  }

  /// The events of our own that wait, which are gone then.
  private func news(_ store: any AccountStore) async throws -> [AccountEvent] {
    let page = try await store.takeOutbox(
      by: "reader", at: Sample.time(1_000_000), until: Sample.time(1_000_001), after: nil, limit: 1000)
    let events = try #require(page).records.map { try AccountEvent(decoding: $0.record.value) }
    try await store.removeFromOutbox(events.map(\.id))
    return events
  }

  // MARK: The account of before

  @Test(arguments: Implementation.all, [true, false])
  func whoHasAnotherAppAtTheTeamBeforeKeepsTheirMailThere(
    _ implementation: Implementation, byBatch: Bool
  ) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      let token = NewToken(
        kind: .refresh, client: Self.other, value: Sample.valid(SecretToken("r-of-an-app-that-stays")))
      _ = try await store.recordSignIn(before, at: Sample.time(3), tokens: [token])
      for _ in 1...2 {
        try await join(store, byBatch: byBatch)
        #expect(
          try await store.relayStates(of: [before, after])
            == [.known(Sample.enabled(2)), state(.enabled, since: 2)])
      }
      #expect(try await news(store).map(\.account) == [before, after])
    }
  }

  @Test(arguments: Implementation.all, [true, false])
  func whoHasNoneAnyMoreDoesNot(_ implementation: Implementation, byBatch: Bool) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      let token = NewToken(
        kind: .refresh, client: Self.other, value: Sample.valid(SecretToken("r-of-an-app-that-is-over")))
      _ = try await store.recordSignIn(before, at: Sample.time(3), tokens: [token])
      let end = Sample.event("end", of: before, at: 4).settled(
        by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(4), of: [Self.other]))
      #expect(try await store.settle([end], at: Sample.time(5)) == [.applied])
      try await join(store, byBatch: byBatch)
      #expect(try await store.relayStates(of: [before, after]) == [.unknown, state(.enabled, since: 2)])
    }
  }

  // MARK: What comes late

  @Test(arguments: Implementation.all, [true, false])
  func whatComesLateForTheAccountOfBeforeIsSaidOfTheNewOneOnce(
    _ implementation: Implementation, byBatch: Bool
  ) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await prepare(store)
      try await join(store, byBatch: byBatch)
      #expect(try await news(store).count == 2)
      let late = said(.disabled, of: before, at: 30, in: store)
      for round in 1...2 {
        let settled = try await store.settle([late, late], at: Sample.time(200))
        #expect(settled.count == 2 && settled[1].isRepeated && settled[0].isRepeated == (round == 2))
        #expect(try await mail(store) == state(.disabled, since: 30), "at its own address")
        let events = try await news(store)
        #expect(events.map(\.account) == (round == 1 ? [after] : []))
        #expect(events.allSatisfy { $0.kind == .accountTransferred && $0.audience == Sample.client })
      }
      // It has been overtaken at the account of before, and so it is at the new one.
      let older = said(.enabled, of: before, at: 20, in: store)
      #expect(try await store.settle([older], at: Sample.time(201)) == [.superseded(.newerEvent)])
      #expect(try await mail(store) == state(.disabled, since: 30))
      #expect(try await news(store).isEmpty)
      // Nobody else's mail is.
      #expect(try await store.relayStates(of: [Sample.account(2)]) == [.known(Sample.enabled(2, 2))])
      #expect(try await administration.verify { _ in }.findings == [])
    }
  }

  /// The app has gone on to a third team, and the person with it. `isRound`: and what it has become there is what it was at
  /// first, as no app's way leads to.
  @Test(arguments: Implementation.all, [false, true])
  func whatComesLateGoesToTheEndOfTheWayOfTheApp(_ implementation: Implementation, isRound: Bool) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await prepare(store)
    try await join(store)
    try await joinThird(store)
    let last = third
    #expect(
      try await store.relayStates(of: [before, after, last]) == [.unknown, .unknown, .known(Sample.enabled(2, 3))])
    _ = try await news(store)
    if isRound {
      try await prepared.run(
        """
        INSERT INTO transferred_account (account, from_team, client, former, at)
        SELECT former, from_team, client, (
          SELECT account FROM transferred_account WHERE account NOT IN (SELECT former FROM transferred_account)), at
        FROM transferred_account WHERE former NOT IN (SELECT account FROM transferred_account)
        """,
        """
        INSERT INTO siwa.transferred_account (account, from_team, client, former, at)
        SELECT former, from_team, client, (
          SELECT account FROM siwa.transferred_account
          WHERE account NOT IN (SELECT former FROM siwa.transferred_account)), at
        FROM siwa.transferred_account WHERE former NOT IN (SELECT account FROM siwa.transferred_account)
        """)
    }
    let late = said(.disabled, of: before, at: 30, in: store)
    for round in 1...2 {
      #expect(try await store.settle([late], at: Sample.time(200)).map(\.isRepeated) == [round == 2])
      #expect(try await store.relayStates(of: [last]) == [.known(Sample.disabled(30, 3))], "at its own address")
      #expect(try await news(store).map(\.account) == (round == 1 ? [after, last] : []))
    }
    // What Apple has said of the last one since, nothing late changes.
    let own = Sample.event("own", of: last, hash: store.hash(of: last), at: 120, yieldsTo: [.erasure])
      .settled(.setRelay(Sample.enabled(120, 3)))
    #expect(try await store.settle([own], at: Sample.time(210)) == [.applied])
    let later = said(.disabled, of: before, at: 40, in: store)
    #expect(try await store.settle([later], at: Sample.time(220)) == [.applied])
    #expect(try await store.relayStates(of: [last]) == [.known(Sample.enabled(120, 3))])
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func whatIsSaidForAnotherAppStaysWithTheAccountOfBefore(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      try await join(store)
      _ = try await news(store)
      let late = said(.disabled, of: before, at: 30, for: Self.other, in: store)
      #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
      #expect(try await mail(store) == state(.enabled, since: 2))
      #expect(try await news(store).isEmpty)
    }
  }

  /// The later one decides, whichever is settled first, and whether in one transaction or in two.
  @Test(arguments: Implementation.all, [true, false])
  func whatHappenedLastDecidesWhicheverAccountItWasSaidOf(
    _ implementation: Implementation, isTogether: Bool
  ) async throws {
    for (own, late) in [(30, 40), (40, 30)] as [(Int64, Int64)] {
      for isOwnFirst in [true, false] {
        try await PreparedStore.with(implementation) { store throws in
          try await prepare(store)
          try await join(store)
          _ = try await news(store)
          let both = [
            said(.enabled, of: after, at: own, in: store), said(.disabled, of: before, at: late, in: store),
          ]
          let order = isOwnFirst ? both : both.reversed()
          for group in isTogether ? [order] : order.map({ [$0] }) {
            _ = try await store.settle(group, at: Sample.time(200))
          }
          #expect(try await mail(store) == (late > own ? state(.disabled, since: late) : state(.enabled, since: own)))
          #expect(try await news(store).count == (late > own || !isOwnFirst ? 1 : 0))
        }
      }
    }
  }

  /// The person had an account at the team already, of which Apple says something late that happened before.
  @Test(arguments: Implementation.all, [true, false])
  func whatMovesWithThePersonMakesVoidWhatWasSaidBeforeOfTheNewAccount(
    _ implementation: Implementation, byBatch: Bool
  ) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await prepare(store)
      #expect(
        try await store.settle([said(.disabled, of: before, at: 60, in: store)], at: Sample.time(61)) == [.applied])
      try await join(store, byBatch: byBatch)
      let steps: [(RelayState.Status, Int64, SettledOutcome)] = [
        (.enabled, 50, .superseded(.newerEvent)), (.enabled, 60, .superseded(.newerEvent)), (.enabled, 70, .applied),
        (.disabled, 65, .superseded(.newerEvent)),
      ]
      for (status, seconds, outcome) in steps {
        let late = said(status, of: after, at: seconds, in: store)
        #expect(try await store.settle([late], at: Sample.time(200)) == [outcome], "\(seconds)")
        #expect(
          try await mail(store)
            == (seconds < 70 && status == .enabled ? state(.disabled, since: 60) : state(.enabled, since: 70)))
      }
      #expect(try await administration.verify { _ in }.findings == [])
    }
  }

  @Test(arguments: Implementation.all, [true, false])
  func whatWasAssumedMakesNothingVoidThatIsSaidOfTheNewAccount(
    _ implementation: Implementation, byBatch: Bool
  ) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      let forgotten = Sample.event("forgotten", of: before, at: 5).settled(.removeRelay)
      #expect(try await store.settle([forgotten], at: Sample.time(6)) == [.applied])
      try await join(store, byBatch: byBatch)
      let late = said(.disabled, of: after, at: 4, in: store)
      #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
      #expect(try await mail(store) == state(.disabled, since: 4))
    }
  }

  /// Nothing was known of mail when the person came, so that it was taken to be enabled.
  @Test(arguments: Implementation.all)
  func whatWasAssumedGivesWayToWhatAppleSays(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      let forgotten = Sample.event("forgotten", of: before, at: 5).settled(.removeRelay)
      #expect(try await store.settle([forgotten], at: Sample.time(6)) == [.applied])
      try await join(store)
      #expect(try await mail(store) == state(.enabled, since: 100))
      for seconds in [30, 40] as [Int64] {
        let late = said(.disabled, of: before, at: seconds, in: store)
        #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
        #expect(try await mail(store) == state(.disabled, since: seconds))
      }
    }
  }

  /// Nor where the app has gone on since, whichever of the three accounts Apple says it of.
  @Test(arguments: Implementation.all, [true, false])
  func whatWasAssumedGivesWayAtTheEndOfTheWayOfTheApp(_ implementation: Implementation, byBatch: Bool) async throws {
    for account in [before, after, third] {
      try await PreparedStore.with(implementation) { store, administration throws in
        try await prepare(store)
        let forgotten = Sample.event("forgotten", of: before, at: 5).settled(.removeRelay)
        #expect(try await store.settle([forgotten], at: Sample.time(6)) == [.applied])
        try await join(store, byBatch: byBatch)
        try await joinThird(store, byBatch: byBatch)
        #expect(
          try await store.relayStates(of: [before, after, third]) == [
            .unknown, .unknown, .known(Sample.enabled(110, 3)),
          ])
        for seconds in (byBatch ? [7, 8] : [30, 40]) as [Int64] {
          let late = said(.disabled, of: account, at: seconds, in: store)
          #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
          #expect(try await store.relayStates(of: [third]) == [.known(Sample.disabled(seconds, 3))])
        }
        #expect(try await administration.verify { _ in }.findings == [])
      }
    }
  }

  /// Consent that was withdrawn since has had it forgotten; and who is erased stays so.
  @Test(arguments: Implementation.all, [true, false])
  func nothingLateBringsBackWhatIsOver(_ implementation: Implementation, isErased: Bool) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      try await join(store)
      if isErased {
        try await store.erase(after, at: 150, isFinal: true)
      } else {
        let over = Sample.event("over", of: after, hash: store.hash(of: after), at: 150, tie: 2).settled(.removeRelay)
        #expect(try await store.settle([over], at: Sample.time(160)) == [.applied])
      }
      _ = try await news(store)
      let late = said(.disabled, of: before, at: 140, in: store)
      #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
      #expect(try await mail(store) == (isErased ? .erased(since: Sample.time(150)) : .unknown))
      #expect(try await news(store).isEmpty)
    }
  }

  /// Neither state is written without the event that says so.
  @Test(arguments: Implementation.all)
  func whatFailsInTheMiddleHasSaidNothingOfEither(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await prepare(store)
    try await join(store)
    _ = try await news(store)
    try await prepared.run(
      """
      CREATE TRIGGER fault BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'fault'); END
      """,
      """
      CREATE FUNCTION siwa.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'fault'; END $$;
      CREATE TRIGGER fault BEFORE INSERT ON siwa.outbox FOR EACH ROW EXECUTE FUNCTION siwa.fault();
      """)
    let late = said(.disabled, of: before, at: 30, in: store)
    await #expect(throws: AccountStoreError.self) { try await store.settle([late], at: Sample.time(200)) }
    #expect(try await store.relayStates(of: [before, after]) == [.unknown, state(.enabled, since: 2)])
    try await prepared.run("DROP TRIGGER fault", "DROP FUNCTION siwa.fault CASCADE")
    #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
    #expect(try await mail(store) == state(.disabled, since: 30))
    await store.close()
  }

  /// While half of the accounts have moved to a new hashing key.
  @Test(arguments: Implementation.all, [0, 1, 2, 3, 5])
  func whatComesLateInTheMidstOfARotationFindsTheNewAccount(
    _ implementation: Implementation, steps: Int
  ) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await prepare(store)
    try await join(store)
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(newHashKey()))
    for _ in 0..<steps { _ = try await rotation.step() }
    let late = said(.disabled, of: before, at: 30, in: store)
    #expect(try await store.settle([late], at: Sample.time(200)) == [.applied])
    try await rotation.finish()
    #expect(try await mail(store) == state(.disabled, since: 30))
    await store.close()
    #expect(try await prepared.administration.verify { _ in }.findings == [])
  }
}
