import AccountEvents
import EventLoop
import Testing

@testable import AccountStore

/// What is said of the account that a person had before an app changed teams, where the one that they have now comes to an
/// end.
@Loop @Suite struct TransferRelativesTests {
  private let before = Sample.account(1)
  private let after = Transfer.account(1)
  private nonisolated static let other = Sample.valid(ClientID("com.example.other"))

  /// A person who has come to the other team with the app; nothing waits to be published.
  private func join(_ store: any AccountStore, isKnown: Bool = true) async throws {
    if isKnown { try await store.fill(1...2) }
    try await store.begin(Transfer.sending, with: Transfer.sent(1...2))
    #expect(
      try await store.record([Transfer.identified(1), Transfer.identified(2)], of: Transfer.sending) == [.done, .done])
    try await store.signIn(1)
    try await store.forgetWaiting()
  }

  /// The same, and the app comes back to its first team, and the person with it.
  private func joinAndComeBack(_ store: any AccountStore) async throws {
    try await join(store)
    let back = Sample.valid(
      TransferPlan(
        "back", .sending, team: Transfer.otherTeam, otherTeam: Transfer.team, client: Sample.client,
        createdAt: Sample.time(1)))
    try await store.begin(back, with: [NewTransferUser(key: "1", subject: after.subject)])
    #expect(try await store.record([Transfer.identified(1, as: 7)], of: back) == [.done])
    let claim = TransferClaim(Transfer.identifier(7), to: Sample.client, address: nil, isPrivate: false)
    _ = try await store.recordSignIn(before, at: Sample.time(120), tokens: [], of: nil, claiming: claim)
    try await store.forgetWaiting()
  }

  /// The person signs in to another app of the team before.
  private func signInToAnAppThatStays(_ store: any AccountStore) async throws -> NewToken {
    let token = NewToken(
      kind: .refresh, client: Self.other, value: Sample.valid(SecretToken("r-of-an-app-that-stays")))
    _ = try await store.recordSignIn(before, at: Sample.time(2), tokens: [token])
    return token
  }

  private func settled(
    _ id: String = "end", by consumer: ConsumerName = Sample.revoker, in store: any AccountStore,
    at seconds: Int64 = 150,
    _ changes: StoreChange...
  ) -> Settlement {
    let event = Sample.event(id, of: after, hash: store.hash(of: after), at: seconds, severity: 2)
    return Settlement(of: event, by: consumer, outcome: "done", changes: changes)
  }

  /// How many tokens are held of the account of before and of the one of now.
  private func tokens(_ store: any AccountStore) async throws -> [Int] {
    [try await store.tokens(of: before).count, try await store.tokens(of: after).count]
  }

  private func deletion(ending: Set<ClientID>? = []) -> StoreChange {
    .tellPredecessor(.accountDeletionRequested, of: nil, ending: ending)
  }

  // MARK: The account of before

  /// Whichever consumer is first, and where both are in one transaction.
  @Test(arguments: Implementation.all, [[Sample.revoker, Sample.eraser], [Sample.eraser, Sample.revoker]])
  func whatErasesTheNewAccountEndsTheOneBeforeOnce(
    _ implementation: Implementation, _ consumers: [ConsumerName]
  ) async throws {
    for isTogether in [true, false] {
      try await PreparedStore.with(implementation) { store throws in
        try await join(store)
        #expect(try await store.tokens(of: before).count == 1)
        let settlements = consumers.map { consumer in
          consumer == Sample.eraser
            ? settled(by: consumer, in: store, deletion(), .eraseAccount(isFinal: true))
            : settled(by: consumer, in: store, .endTokens(issuedUpTo: Sample.time(150)), deletion())
        }
        for _ in 1...2 {
          for group in isTogether ? [settlements] : settlements.map({ [$0] }) {
            _ = try await store.settle(group, at: Sample.time(160))
          }
        }
        #expect(try await tokens(store) == [0, 0])
        let told = try await store.waiting()
        #expect(told.count == 1)
        let event = try #require(told.first)
        #expect(event.account == before && event.kind == .accountDeletionRequested)
        #expect(event.audience == Sample.client && RelativeEvent.isTold(event.id, .predecessor))
        #expect(event.occurredAt == Sample.time(150) && event.issuedAt == Sample.time(160))
        // What becomes known of before then is over.
        let late = Sample.token(9)
        #expect(try await store.recordSignIn(before, at: Sample.time(140), tokens: [late]) == [late])
        // Somebody else's stay.
        #expect(try await store.tokens(of: Sample.account(2)).count == 1)
      }
    }
  }

  @Test(arguments: Implementation.all)
  func whoHasSignedInToAnAppThatStaysGoesOnThere(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await join(store)
      let token = try await signInToAnAppThatStays(store)
      #expect(try await store.settle([settled("one", in: store, deletion())], at: Sample.time(160)) == [.applied])
      #expect(try await store.tokens(of: before).map(\.token) == [token], "those of the app that has gone are over")
      #expect(try await store.waiting().isEmpty)
      #expect(try await store.relayStates(of: [before]) == [.unknown])
      // That one has gone, too, as the configuration says by now.
      let all = settled("two", in: store, at: 151, deletion(ending: [Self.other]))
      #expect(try await store.settle([all], at: Sample.time(161)) == [.applied])
      #expect(try await store.tokens(of: before).isEmpty)
      #expect(try await store.waiting().map(\.account) == [before])
    }
  }

  /// What stands before it in the same transaction counts: the token of the app that stays was ended, or is younger than
  /// what was ended.
  @Test(arguments: Implementation.all, [true, false])
  func whatWasEndedJustBeforeKeepsNobodyThere(_ implementation: Implementation, isEnded: Bool) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await join(store)
      _ = try await signInToAnAppThatStays(store)
      let over = Sample.event("over", of: before, hash: store.hash(of: before), at: 140).settled(
        by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(isEnded ? 2 : 1), of: [Self.other]))
      let settled = try await store.settle([over, settled(in: store, deletion())], at: Sample.time(160))
      #expect(settled == [.applied, .applied])
      #expect(try await store.tokens(of: before).isEmpty == isEnded)
      #expect(try await store.waiting().map(\.account) == (isEnded ? [before] : []))
    }
  }

  @Test(arguments: Implementation.all)
  func ofWhomThisTransactionHasLeftNothingNothingIsSaid(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await join(store)
      let gone = Sample.event("gone", of: before, hash: store.hash(of: before), at: 140, severity: 2).settled(
        by: Sample.eraser, .eraseAccount(isFinal: true))
      let settled = try await store.settle([gone, settled(in: store, deletion())], at: Sample.time(160))
      #expect(settled == [.applied, .applied])
      #expect(try await store.waiting().isEmpty)
    }
  }

  @Test(arguments: Implementation.all)
  func aDeletedAppleAccountEndsAllOfTheOneBefore(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await join(store)
      _ = try await signInToAnAppThatStays(store)
      #expect(try await store.settle([settled(in: store, deletion(ending: nil))], at: Sample.time(160)) == [.applied])
      #expect(try await store.tokens(of: before).isEmpty)
      #expect(try await store.waiting().map(\.kind) == [.accountDeletionRequested])
    }
  }

  @Test(arguments: Implementation.all)
  func aConsentToOtherAppsOfTheNewTeamSaysNothingOfBefore(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await join(store)
      let consents: [Set<ClientID>?] = [[Self.other], [Sample.client, Self.other], nil]
      for (index, apps) in consents.enumerated() {
        let change = StoreChange.tellPredecessor(.credentialInvalid, of: apps, ending: [])
        let event = settled("over-\(index)", in: store, at: 150 + Int64(index), change)
        #expect(try await store.settle([event], at: Sample.time(160)) == [.applied])
        #expect(try await store.tokens(of: before).isEmpty == (index > 0))
        #expect(try await store.waiting().map(\.kind) == (index > 0 ? [.credentialInvalid] : []))
        try await store.forgetWaiting()
      }
    }
  }

  /// Their team has no accounts here, and only a list of users.
  @Test(arguments: Implementation.all)
  func whoIsKnownByThePlanAloneIsTold(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await join(store, isKnown: false)
      #expect(try await store.knowledge(of: store.id(of: before)) == .unknown)
      #expect(try await store.settle([settled("one", in: store, deletion())], at: Sample.time(160)) == [.applied])
      #expect(try await store.waiting().map(\.account) == [before])
      // Without the plan nobody knows who that was.
      try await store.forgetWaiting()
      #expect(try await store.removePlan(Transfer.sending.name))
      let later = settled("two", in: store, at: 151, deletion())
      #expect(try await store.settle([later], at: Sample.time(161)) == [.applied])
      #expect(try await store.waiting().isEmpty)
    }
  }

  /// Neither the tokens nor the event are there without the settlement.
  @Test(arguments: Implementation.all)
  func whatFailsInTheMiddleHasSaidNothing(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await join(store)
    try await prepared.run(
      """
      CREATE TRIGGER fault BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'fault'); END
      """,
      """
      CREATE FUNCTION siwa.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'fault'; END $$;
      CREATE TRIGGER fault BEFORE INSERT ON siwa.outbox FOR EACH ROW EXECUTE FUNCTION siwa.fault();
      """)
    let end = settled(in: store, deletion(), .eraseAccount(isFinal: true))
    await #expect(throws: AccountStoreError.self) { try await store.settle([end], at: Sample.time(160)) }
    #expect(try await tokens(store) == [1, 1])
    try await prepared.run("DROP TRIGGER fault", "DROP FUNCTION siwa.fault CASCADE")
    #expect(try await store.settle([end], at: Sample.time(160)) == [.applied])
    #expect(try await tokens(store) == [0, 0])
    #expect(try await store.waiting().map(\.account) == [before])
    await store.close()
  }

  /// While half of the accounts have moved to a new hashing key.
  @Test(arguments: Implementation.all, [0, 1, 2, 3, 5])
  func anEndInTheMidstOfARotationFindsTheAccountOfBefore(_ implementation: Implementation, steps: Int) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await join(store)
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(newHashKey()))
    for _ in 0..<steps { _ = try await rotation.step() }
    #expect(try await store.settle([settled(in: store, deletion())], at: Sample.time(160)) == [.applied])
    try await rotation.finish()
    #expect(try await store.tokens(of: before).isEmpty)
    #expect(try await store.waiting().map(\.account) == [before])
    await store.close()
    #expect(try await prepared.administration.verify { _ in }.findings == [])
  }

  // MARK: There and back

  /// What it had become may go on with apps that were never anywhere else.
  @Test(arguments: Implementation.all)
  func whatAnAppHasComeBackFromIsNotWhatItsAccountHasBecome(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await joinAndComeBack(store)
      let event = Sample.event("end", of: before, hash: store.hash(of: before), at: 150)
      let changes = [StoreChange.tellSuccessor(.accountDeletionRequested, of: nil)]
      _ = try await store.settle(
        [Settlement(of: event, by: Sample.revoker, outcome: "done", changes: changes)], at: Sample.time(160))
      #expect(try await store.waiting().isEmpty)
    }
  }

  /// Each is what the other one was before, and what it has become.
  @Test(arguments: Implementation.all)
  func anAppThatCameBackTellsEachAccountOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await joinAndComeBack(store)
      let changes = [
        StoreChange.tellSuccessor(.accountDeletionRequested, of: nil), deletion(),
      ]
      let first = Sample.event("first", of: before, hash: store.hash(of: before), at: 150)
      _ = try await store.settle(
        [Settlement(of: first, by: Sample.revoker, outcome: "done", changes: changes)], at: Sample.time(160))
      var (told, rounds): (Set<EventID>, Int) = ([], 0)
      while true {
        let events = try await store.waiting()
        if events.isEmpty { break }
        rounds += 1
        try #require(rounds < 10, "it goes to and fro")
        for event in events {
          #expect(told.insert(event.id).inserted || rounds > 2)
          // No fence is in the way: each is told on both ways.
          let reference = Sample.event(
            event.id.text, of: event.account, hash: store.hash(of: event.account), at: 150, severity: rounds)
          _ = try await store.settle(
            [Settlement(of: reference, by: Sample.revoker, outcome: "done", changes: changes)], at: Sample.time(160))
        }
        _ = try await store.removeFromOutbox(events.map(\.id))
      }
      #expect(told.count == 2, "one of each account")
    }
  }
}

extension AccountStore {
  /// A person signs in at the team that has the app now, as whoever the identifier names.
  @Loop
  fileprivate func signIn(_ number: Int) async throws {
    let claim = TransferClaim(
      Transfer.identifier(number), to: Sample.client, address: Transfer.address(number), isPrivate: true)
    _ = try await recordSignIn(
      Transfer.account(number), at: Sample.time(100), tokens: [Sample.token(100 + number)], of: nil, claiming: claim)
  }

  /// The events of our own that wait to be published.
  @Loop
  fileprivate func waiting() async throws -> [AccountEvent] {
    let page = try await takeOutbox(
      by: "reader", at: Sample.time(1_000_000), until: Sample.time(1_000_001), after: nil, limit: 1000)
    return try #require(page).records.map { try AccountEvent(decoding: $0.record.value) }
  }

  /// As if all of them were published.
  @Loop
  fileprivate func forgetWaiting() async throws {
    try await removeFromOutbox(try await waiting().map(\.id))
  }
}
