import AccountEvents
import EventLoop
import Testing

@testable import AccountStore

/// Which refresh tokens are given out to be validated, to whom, and what follows from what was found.
@Loop @Suite struct ValidationTests {
  private nonisolated static let web = Sample.valid(ClientID("com.example.web"))
  private nonisolated static let day = TokenValidation.interval.components.seconds

  private nonisolated func lease(_ holder: String, at seconds: Int64 = 0) -> Lease {
    Lease(name: Lease.validation, holder: holder, until: (Sample.time(seconds) + Lease.length).milliseconds)
  }

  private nonisolated func token(_ number: Int, of client: ClientID) -> NewToken {
    NewToken(kind: .refresh, client: client, value: Sample.valid(SecretToken("r\(number).of.\(client)")))
  }

  private nonisolated func finding(_ token: DueToken, _ id: String, of clients: Set<ClientID> = [Sample.client])
    -> TokenValidation
  {
    TokenValidation(of: token, .invalid(Sample.valid(EventID(id)), of: clients))
  }

  /// Gives out what is due at that second, the lease being taken before.
  private func claim(
    _ store: any AccountStore, at seconds: Int64, _ count: Int = 100, without clients: Set<ClientID> = []
  ) async throws -> [DueToken] {
    if try await store.lease(Lease.validation) == nil { _ = try await store.take(lease("a"), after: nil) }
    let claimed = try await store.claimTokens(count, without: clients, under: lease("a"), at: Sample.time(seconds))
    return try #require(claimed).tokens
  }

  /// The events that wait to be published.
  private func events(_ store: any AccountStore) async throws -> [(event: AccountEvent, record: EventRecord)] {
    let records = try await store.takeOutbox(
      by: "reader", at: Sample.time(1_000_000), until: Sample.time(1_000_001), after: nil, limit: 100)
    return try #require(records).records.map { (try AccountEvent(decoding: $0.record.value), $0.record) }
  }

  // MARK: What is due

  @Test(arguments: Implementation.all)
  func noTokenIsGivenOutTwiceInADay(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...3)
      _ = try await store.recordSignIn(Sample.account(4), at: Sample.time(50), tokens: [Sample.token(4, .access)])
      // Issued at the second 1: Apple has said then that they are good.
      #expect(try await claim(store, at: Self.day).isEmpty)
      let first = try await claim(store, at: Self.day + 1, 2)
      #expect(first.count == 2 && first.allSatisfy { $0.claimedBefore == nil && $0.issuedAt == Sample.time(1) })
      let second = try await claim(store, at: Self.day + 2)
      #expect(second.count == 1)
      #expect(Set((first + second).map(\.account)) == Set((1...3).map { Sample.account($0) }))
      for token in first + second {
        let held = try await store.tokens(of: token.account)
        #expect(held.map(\.token.value) == [token.value])
      }
      // Whoever was given them may have been killed: nobody else gets them for a day.
      #expect(try await claim(store, at: 2 * Self.day).isEmpty)
      let again = try await claim(store, at: 2 * Self.day + 1)
      #expect(Set(again.map(\.account)) == Set(first.map(\.account)))
      #expect(again.allSatisfy { $0.claimedBefore == Sample.time(Self.day + 1) })
      let census = try await store.validationCensus(at: Sample.time(2 * Self.day + 3))
      #expect(census == ValidationCensus(tokens: 3, due: 1, dueSince: Sample.time(2 * Self.day + 2)))
    }
  }

  @Test(arguments: Implementation.all)
  func theLongestWithoutAValidationComesFirstAndSomeAppsMayBeLeftAlone(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      for number in 1...4 {
        _ = try await store.recordSignIn(
          Sample.account(number), at: Sample.time(Int64(10 - number)),
          tokens: [token(number, of: number == 4 ? Self.web : Sample.client)])
      }
      let due = try await claim(store, at: 10 * Self.day, 2, without: [Self.web, Sample.valid(ClientID("none"))])
      #expect(due.map(\.account) == [Sample.account(3), Sample.account(2)])
      #expect(try await claim(store, at: 10 * Self.day).map(\.account) == [Sample.account(4), Sample.account(1)])
    }
  }

  @Test(arguments: Implementation.all)
  func aTokenOfWhichAppleWasNotAskedIsDueAsBefore(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...2)
      let due = try await claim(store, at: 2 * Self.day)
      #expect(due.count == 2)
      _ = try await store.record([TokenValidation(of: due[0], .notAsked)], at: Sample.time(2 * Self.day + 1))
      #expect(try await claim(store, at: 2 * Self.day + 2).map(\.account) == [due[0].account])
      // It was given out anew: what comes late changes nothing.
      _ = try await store.record([TokenValidation(of: due[0], .notAsked)], at: Sample.time(2 * Self.day + 3))
      #expect(try await claim(store, at: 2 * Self.day + 4).isEmpty)
    }
  }

  @Test(arguments: Implementation.all)
  func aTokenThatDoesNotOpenKeepsNoOtherFromBeingValidated(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.fill(1...2)
    try await prepared.breakKeys()
    _ = try await store.recordSignIn(Sample.account(3), at: Sample.time(1), tokens: [Sample.token(3)])
    _ = try await store.take(lease("a"), after: nil)
    let claimed = try await store.claimTokens(9, without: [], under: lease("a"), at: Sample.time(2 * Self.day))
    #expect(claimed?.tokens.map(\.account) == [Sample.account(3)] && claimed?.damaged == 2)
    #expect(try await claim(store, at: 2 * Self.day + 1).isEmpty)
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func theRefreshTokensOfAnAppAreCountedUpToALimit(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...4)
      _ = try await store.recordSignIn(Sample.account(5), at: Sample.time(1), tokens: [token(5, of: Self.web)])
      _ = try await store.recordSignIn(Sample.account(6), at: Sample.time(1), tokens: [Sample.token(6, .access)])
      #expect(try await store.refreshTokens(of: Sample.client, upTo: 3) == 3)
      #expect(try await store.refreshTokens(of: Sample.client, upTo: 9) == 4)
      #expect(try await store.refreshTokens(of: Self.web, upTo: 9) == 1)
      // What is known to be invalid does not count.
      let due = try await claim(store, at: 2 * Self.day, 1, without: [Self.web])
      #expect(try await store.record([finding(due[0], "credential-1")], at: Sample.time(2 * Self.day)) == [.published])
      #expect(try await store.refreshTokens(of: Sample.client, upTo: 9) == 3)
      #expect(try await store.refreshTokens(of: Sample.valid(ClientID("none")), upTo: 9) == 0)
    }
  }

  // MARK: Who gets them

  @Test(arguments: Implementation.all)
  func whoeverHasLostTheLeaseGetsNothing(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (one, other) = (try await prepared.open(), try await prepared.open())
    try await one.fill(1...2)
    #expect(try await one.take(lease("a"), after: nil))
    #expect(try await !other.take(lease("b"), after: nil))
    let seen = try await other.lease(Lease.validation)
    #expect(seen == lease("a"))
    // Renewed meanwhile: whoever has seen it before cannot take it.
    #expect(try await one.claimTokens(0, without: [], under: lease("a"), at: Sample.time(10))?.tokens.isEmpty == true)
    #expect(try await !other.take(lease("b"), after: seen))
    #expect(try await other.take(lease("b"), after: try await other.lease(Lease.validation)))
    let none = try await one.claimTokens(9, without: [], under: lease("a"), at: Sample.time(2 * Self.day))
    #expect(none?.tokens == nil)
    // Nor was anything given out in that name.
    let claimed = try await other.claimTokens(9, without: [], under: lease("b"), at: Sample.time(2 * Self.day))
    #expect(claimed?.tokens.count == 2)
    try await one.giveUp(lease("a"))
    #expect(try await one.lease(Lease.validation)?.holder == "b")
    try await other.giveUp(lease("b"))
    let left = try await one.lease(Lease.validation)
    #expect(left == nil)
    await one.close()
    await other.close()
  }

  // MARK: What was found

  @Test(arguments: Implementation.all)
  func aGoodTokenIsKnownToHaveBeenGood(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let due = try await claim(store, at: 2 * Self.day)
      let noted = try await store.record([TokenValidation(of: due[0], .good)], at: Sample.time(2 * Self.day + 5))
      #expect(noted == [.noted])
      guard case .known(let profile) = try await store.knowledge(of: store.id(of: Sample.account())) else {
        return #expect(Bool(false), "not known")
      }
      #expect(profile.signIns.map(\.validatedAt) == [Sample.time(2 * Self.day + 5)])
      #expect(try await store.outbox().waiting == 0)
    }
  }

  @Test(arguments: Implementation.all)
  func anAuthorizationThatIsOverIsAnEventOnceAsOfItsSignIn(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let due = try await claim(store, at: 2 * Self.day)
      let found = finding(due[0], "credential-1")
      #expect(try await store.record([found], at: Sample.time(2 * Self.day + 5)) == [.published])
      // Whoever does not know whether it was written writes it again; and nobody asks about it any more.
      #expect(try await store.record([found], at: Sample.time(2 * Self.day + 6)) == [.gone])
      #expect(try await claim(store, at: 9 * Self.day).isEmpty)
      #expect(try await store.validationCensus(at: Sample.time(9 * Self.day)).tokens == 0)

      let waiting = try await events(store)
      #expect(
        waiting.map(\.event) == [
          AccountEvent(
            id: Sample.valid(EventID("credential-1")), team: Sample.account().team, audience: Sample.client,
            subject: Sample.account().subject, kind: .credentialInvalid, occurredAt: Sample.time(1),
            issuedAt: Sample.time(2 * Self.day + 5))
        ])
      let code = waiting[0].record.headers.last { $0.name == EventRecord.requestCodeHeader }
      #expect(
        store.isGenuine(
          String(decoding: code?.value ?? [], as: UTF8.self),
          of: DeletionRequest(waiting[0].record.value, by: [], because: [])))
      // The token is the token revoker's to end; until then applications are not told that it stands for anything.
      #expect(try await store.tokens(of: Sample.account()).count == 1)
      guard case .known(let profile) = try await store.knowledge(of: store.id(of: Sample.account())) else {
        return #expect(Bool(false), "not known")
      }
      #expect(profile.signIns.isEmpty && profile.ended == [Sample.client])
    }
  }

  /// The person signs in anew while Apple is asked, or between its answer and the commit.
  @Test(arguments: Implementation.all, [1, 2])
  func aSignInThatIsYoungerThanTheTokenIsNeverEnded(_ implementation: Implementation, seconds: Int64) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let due = try await claim(store, at: 2 * Self.day)
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(seconds), tokens: [Sample.token(2)])
      #expect(try await store.record([finding(due[0], "credential-1")], at: Sample.time(2 * Self.day)) == [.covered])
      #expect(try await store.outbox().waiting == 0)
      // Once that one is dead, too, both are over.
      let rest = try await claim(store, at: 4 * Self.day)
      #expect(rest.map(\.value) == [Sample.token(2).value])
      #expect(try await store.record([finding(rest[0], "credential-2")], at: Sample.time(4 * Self.day)) == [.published])
      #expect(try await events(store).map(\.event.occurredAt) == [Sample.time(seconds)])
    }
  }

  /// It was on its way to the token revoker when the person came back.
  @Test(arguments: Implementation.all)
  func aFindingThatWasWrittenBeforeTheSignInIsOlderThanIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let due = try await claim(store, at: 2 * Self.day)
      #expect(try await store.record([finding(due[0], "credential-1")], at: Sample.time(2 * Self.day)) == [.published])
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(2), tokens: [Sample.token(2)])
      let event = try await events(store)[0].event
      let reference = Sample.event(event.id.text, at: 1, yieldsTo: [.signIn])
      #expect(reference.occurredAt == event.occurredAt)
      #expect(try await store.standings(of: [reference], for: Sample.revoker) == [.superseded(.newerSignIn)])
      // Nor does it end the younger one where the apps do not share consent.
      let end = StoreChange.endTokens(issuedUpTo: event.occurredAt, of: [Sample.client])
      _ = try await store.settle(
        [Sample.event(event.id.text, at: 1).settled(by: Sample.revoker, end)], at: Sample.time(3 * Self.day))
      #expect(try await store.tokens(of: Sample.account()).map(\.token) == [Sample.token(2)])
    }
  }

  @Test(arguments: Implementation.all)
  func appsThatShareConsentAreOverTogetherAndOthersByThemselves(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      for number in 1...2 {
        _ = try await store.recordSignIn(
          Sample.account(number), at: Sample.time(10), tokens: [token(number, of: Sample.client)])
        _ = try await store.recordSignIn(
          Sample.account(number), at: Sample.time(20), tokens: [token(number, of: Self.web)])
      }
      let due = try await claim(store, at: 2 * Self.day)
      func found(_ number: Int, _ client: ClientID, of clients: Set<ClientID>) throws -> TokenValidation {
        let token = try #require(due.first { $0.account == Sample.account(number) && $0.client == client })
        return finding(token, "credential-\(number)-\(client)", of: clients)
      }
      let both: Set<ClientID> = [Sample.client, Self.web]
      // In one transaction, one after the other.
      let outcomes = try await store.record(
        [
          try found(1, Sample.client, of: both), try found(1, Self.web, of: both),
          try found(2, Sample.client, of: [Sample.client]),
        ], at: Sample.time(2 * Self.day))
      #expect(outcomes == [.covered, .published, .published])
      let waiting = try await events(store).map(\.event)
      #expect(waiting.map(\.audience) == [Self.web, Sample.client])
      #expect(waiting.map(\.occurredAt) == [Sample.time(20), Sample.time(10)])
    }
  }

  @Test(arguments: Implementation.all)
  func aTokenThatIsGoneIsNoFinding(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...3)
      let due = try await claim(store, at: 2 * Self.day)
      let byAccount = Dictionary(uniqueKeysWithValues: due.map { ($0.account, $0) })
      let revoked = Sample.event("r", of: Sample.account(1), at: 5)
        .settled(by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(5), of: nil))
      let erased = Sample.event("e", of: Sample.account(2), at: 5)
        .settled(by: Sample.eraser, .eraseAccount(isFinal: true))
      _ = try await store.settle([revoked, erased], at: Sample.time(2 * Self.day))
      // The same token came of a later sign-in, as an import tells it.
      _ = try await store.recordSignIn(Sample.account(3), at: Sample.time(9), tokens: [Sample.token(3)])
      var findings: [TokenValidation] = []
      for number in 1...3 {
        findings.append(finding(try #require(byAccount[Sample.account(number)]), "credential-\(number)"))
      }
      #expect(try await store.record(findings, at: Sample.time(2 * Self.day)) == [.gone, .gone, .gone])
      #expect(try await store.outbox().waiting == 0)
    }
  }

  /// An erasure writes the rows anew of what is younger than it.
  @Test(arguments: Implementation.all)
  func whatAnErasureSparesIsNotAskedAboutTwiceInADay(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(20), tokens: [Sample.token(2)])
      let due = try await claim(store, at: 2 * Self.day)
      _ = try await store.record(
        due.filter { $0.issuedAt == Sample.time(20) }.map { TokenValidation(of: $0, .good) },
        at: Sample.time(2 * Self.day + 1))
      let erased = Sample.event("e", at: 10).settled(by: Sample.eraser, .eraseAccount(isFinal: false))
      _ = try await store.settle([erased], at: Sample.time(2 * Self.day))
      #expect(try await store.tokens(of: Sample.account()).map(\.token) == [Sample.token(2)])
      #expect(try await claim(store, at: 3 * Self.day - 1).isEmpty)
      guard case .known(let profile) = try await store.knowledge(of: store.id(of: Sample.account())) else {
        return #expect(Bool(false), "not known")
      }
      #expect(profile.signIns.map(\.validatedAt) == [Sample.time(2 * Self.day + 1)])
      #expect(try await claim(store, at: 3 * Self.day).count == 1)
    }
  }

  /// In the middle of a rotation of the hashing key, moved or not; what was given out before is found after it.
  @Test(arguments: Implementation.all)
  func rotationsOfTheHashingKeyLoseNoFinding(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.fill(1...4)
    let early = try await claim(store, at: 2 * Self.day, 2)
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(newHashKey()))
    _ = try await rotation.step()
    let late = try await claim(store, at: 2 * Self.day + 1)
    #expect(Set((early + late).map(\.account)) == Set((1...4).map { Sample.account($0) }))
    let some = [finding(early[0], "credential-1"), TokenValidation(of: late[0], .good)]
    #expect(try await store.record(some, at: Sample.time(2 * Self.day + 2)) == [.published, .noted])
    try await rotation.finish()
    let others = [finding(early[1], "credential-2"), TokenValidation(of: late[1], .notAsked)]
    #expect(try await store.record(others, at: Sample.time(2 * Self.day + 3)) == [.published, .noted])
    #expect(try await claim(store, at: 2 * Self.day + 4).map(\.account) == [late[1].account])
    #expect(Set(try await events(store).map(\.event.subject)) == Set(early.map(\.account.subject)))
    await store.close()
  }
}
