import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import ConsumerSupport
import EventLoop
import TestSupport
import Testing

/// What each event does to tokens, here and at Apple.
@Loop @Suite(.timeLimit(.minutes(30))) struct TokenRevokerTests {
  @Test(arguments: [AccountEvent.Kind.consentRevoked, .credentialInvalid, .accountDelete])
  func whatAppleSaysIsOverEndsTheTokensWithoutACall(_ kind: AccountEvent.Kind) async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn(at: 11, to: RevokerRig.web, keeping: [.refresh, .access])
      try rig.happen(kind, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      #expect(try rig.said() == ["event-20 tokens-revoked", "event-20 sessions-ended"])
      #expect(try await rig.tokens().isEmpty)
      #expect(rig.asked == 0)
    }
  }

  /// Apple says in whole seconds when somebody signed in.
  @Test func aTokenThatMayBeYoungerIsRevokedUnlessALaterSignInIsInForce() async throws {
    try await RevokerRig.run(groups: [[RevokerRig.app]]) { rig in
      try await rig.signIn(at: 20)
      try rig.happen(.consentRevoked, 20)
      try await rig.process.untilDone(1)
      #expect(try await rig.tokens().isEmpty)
      #expect(rig.asked == 1 && rig.apple.revocationsAsked == 1, "nobody could end it any more")
      try await rig.signIn(at: 30)
      try await rig.signIn(at: 31)
      try rig.happen(.consentRevoked, 30)
      try await rig.process.untilDone(2)
      #expect(try await rig.tokens().map(\.issuedAt) == [.event(31)])
      #expect(rig.asked == 0, "Apple would have ended the later one")
    }
  }

  @Test(arguments: [[[RevokerRig.app], [RevokerRig.web]], [[RevokerRig.web]], [[RevokerRig.app]]])
  func aWithdrawnConsentEndsTheTokensOfTheAppsThatShareIt(_ groups: [[String]]) async throws {
    try await RevokerRig.run(groups: groups) { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn(at: 11, to: RevokerRig.web)
      try rig.happen(.consentRevoked, 20, for: RevokerRig.app)
      try await rig.process.untilDone(1)
      #expect(try await rig.tokens().map(\.token.client.text) == [RevokerRig.web])
      // Older, and of another consent: neither the event above nor a sign-in to another app says anything of it.
      try await rig.signIn(at: 30)
      try rig.happen(.consentRevoked, 15, for: RevokerRig.web)
      try await rig.process.untilDone(2)
      #expect(try await rig.tokens().map(\.issuedAt) == [.event(30)])
      #expect(rig.process.done == ["tokens-revoked": 2])
      // Of the app's own sign-in it does.
      try rig.happen(.consentRevoked, 25, for: RevokerRig.app)
      try await rig.process.untilDone(3)
      #expect(rig.process.done == ["tokens-revoked": 2, "newer-sign-in": 1])
      #expect(try rig.said().last == "event-25 no-effect: newer-sign-in")
      #expect(try await rig.tokens().count == 1)
      // The end of the account is everybody's, and covers what happened before it.
      try await rig.signIn(at: 31, to: RevokerRig.web)
      try rig.happen(.accountDelete, 40, for: RevokerRig.app)
      try rig.happen(.consentRevoked, 35, for: RevokerRig.web)
      try await rig.process.untilDone(5)
      #expect(try await rig.tokens().isEmpty)
      #expect(rig.process.done["superseded-newer-event"] == 1)
      #expect(rig.asked == 0)
    }
  }

  @Test(arguments: [nil, [[RevokerRig.app, RevokerRig.web]]])
  func appsThatShareConsentLoseTheirTokensTogether(_ groups: [[String]]?) async throws {
    try await RevokerRig.run(groups: groups) { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn(at: 11, to: RevokerRig.web)
      try rig.happen(.consentRevoked, 20, for: RevokerRig.app)
      try await rig.process.untilDone(1)
      #expect(try await rig.tokens().isEmpty)
    }
  }

  @Test(arguments: [AccountEvent.Kind.consentRevoked, .credentialInvalid, .accountDelete, .accountDeletionRequested])
  func noTokenIsAnOutcomeOfItsOwn(_ kind: AccountEvent.Kind) async throws {
    try await RevokerRig.run { rig in
      try rig.happen(kind, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["no-token": 1])
      #expect(try rig.said() == ["event-20 no-token", "event-20 sessions-ended"])
      #expect(rig.asked == 0)
    }
  }

  /// As of the sign-in that is over: one that is younger by a millisecond stays.
  @Test(arguments: [nil, [[RevokerRig.app]]])
  func aFindingEndsTheSignInThatItIsOfAndNoneThatIsYounger(_ groups: [[String]]?) async throws {
    try await RevokerRig.run(groups: groups) { rig in
      try await rig.signIn(at: 10)
      try rig.happen(.credentialInvalid, 10)
      try await rig.process.untilDone(1)
      #expect(try rig.said() == ["event-10 tokens-revoked", "event-10 sessions-ended"])
      #expect(try await rig.tokens().isEmpty)
      try await rig.signIn(at: 20)
      try rig.happen(.credentialInvalid, 19, id: "late")
      try await rig.process.untilDone(2)
      #expect(try await rig.tokens().map(\.issuedAt) == [.event(20)])
      #expect(try rig.said().last?.hasPrefix("late no-effect: ") == true)
      #expect(rig.asked == 0)
    }
  }

  /// The app has changed teams: what ends the account of before is said of the one that the person has now.
  /// That its tokens are dead says nothing of that one.
  @Test(arguments: [
    (AccountEvent.Kind.consentRevoked, AccountEvent.Kind.credentialInvalid as AccountEvent.Kind?),
    (.credentialInvalid, nil), (.accountDelete, .accountDeletionRequested),
    (.accountDeletionRequested, .accountDeletionRequested),
  ])
  func whatEndsAnAccountIsSaidOfItsSuccessorOnce(_ kind: AccountEvent.Kind, _ told: AccountEvent.Kind?) async throws {
    try await RevokerRig.run { rig in
      let before = try RevokerRig.account("ada")
      let after = Account(
        team: try #require(TeamID("Z9Y8X7W6V5")), subject: try #require(AppleSubject("ada-at-the-other-team")))
      try await rig.signIn(at: 10)
      try await rig.process.store.transfer(
        before, to: after, try #require(RelayAddress("ada@privaterelay.appleid.com")),
        with: try #require(ClientID(RevokerRig.app)), at: .event(15))
      try await rig.process.store.removeFromOutbox(rig.process.store.waitingEvents().map(\.id))
      try rig.happen(kind, 20)
      try rig.happen(kind, 20, to: "bob", id: "of-bob")
      try await rig.process.untilDone(2)
      try await rig.restart(rereading: true)
      try await rig.process.untilDone(2)
      let waiting = try await rig.process.store.waitingEvents()
      #expect(waiting.map(\.kind) == (told.map { [$0] } ?? []))
      #expect(waiting.allSatisfy { $0.account == after && $0.occurredAt == .event(20) })
      #expect(waiting.allSatisfy { $0.audience.text == RevokerRig.app })
    }
  }

  /// What ends the account that the person has now is over with the one of before, too, whose tokens Apple is not asked
  /// about: the app is another team's.
  @Test(arguments: [
    (AccountEvent.Kind.consentRevoked, AccountEvent.Kind.credentialInvalid),
    (.credentialInvalid, .credentialInvalid), (.accountDelete, .accountDeletionRequested),
    (.accountDeletionRequested, .accountDeletionRequested),
  ])
  func whatEndsAnAccountIsSaidOfTheOneOfBeforeOnce(_ kind: AccountEvent.Kind, _ told: AccountEvent.Kind) async throws {
    try await RevokerRig.run { rig in
      let after = try RevokerRig.account("ada")
      let before = Account(
        team: try #require(TeamID("Z9Y8X7W6V5")), subject: try #require(AppleSubject("ada-at-the-other-team")))
      let app = try #require(ClientID(RevokerRig.app))
      let token = NewToken(kind: .refresh, client: app, value: try #require(SecretToken("r-of-the-team-before")))
      _ = try await rig.process.store.recordSignIn(before, at: .event(5), tokens: [token])
      try await rig.signIn(at: 10)
      try await rig.process.store.transfer(
        before, to: after, try #require(RelayAddress("ada@privaterelay.appleid.com")), with: app, at: .event(15))
      try await rig.process.store.removeFromOutbox(rig.process.store.waitingEvents().map(\.id))
      let revocations = rig.apple.revocationsAsked
      try rig.happen(kind, 20)
      try await rig.process.untilDone(1)
      #expect(rig.apple.revocationsAsked == revocations + (kind == .accountDeletionRequested ? 1 : 0))
      #expect(try await rig.process.store.tokens(of: before).isEmpty)
      try await rig.restart(rereading: true)
      try await rig.process.untilDone(1)
      let waiting = try await rig.process.store.waitingEvents()
      #expect(waiting.map(\.kind) == [told])
      #expect(waiting.allSatisfy { $0.account == before && $0.occurredAt == .event(20) && $0.audience == app })
    }
  }

  @Test func eventsAboutMailArePassedOver() async throws {
    try await RevokerRig.run { rig in
      let address = try #require(RelayAddress("a@privaterelay.appleid.com"))
      try await rig.signIn(at: 10)
      try rig.happen(.emailDisabled(address, isPrivate: true), 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["passed-over": 1])
      #expect(try await rig.tokens().count == 1)
    }
  }

  @Test func aRequestedDeletionIsRevokedAtAppleAndValidatedOnce() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10, keeping: [.access, .refresh])
      try await rig.signIn("bob", at: 10)
      let asked = rig.apple.tokensAsked
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      #expect(try rig.said() == ["event-20 tokens-revoked", "event-20 sessions-ended"])
      #expect(!rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app))
      #expect(rig.apple.isAuthorized(Person(named: "bob"), for: RevokerRig.app))
      #expect(try await rig.tokens().isEmpty)
      #expect(try await rig.tokens(of: "bob").count == 1)
      #expect(rig.apple.revocationsAsked == 1 && rig.apple.tokensAsked == asked + 1)
    }
  }

  @Test func eachAppsAuthorizationIsRevokedInItsOwnName() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn(at: 11, to: RevokerRig.web)
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      for app in [RevokerRig.app, RevokerRig.web] {
        #expect(!rig.apple.isAuthorized(Person(named: "ada"), for: app), "\(app)")
      }
      #expect(rig.apple.revocationsAsked == 2 && rig.asked == 4)
    }
  }

  @Test func aTokenThatIsDeadAlreadyIsEnded() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      _ = try rig.apple.sign(.consentRevoked, of: Person(named: "ada"), for: RevokerRig.app)
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      #expect(try await rig.tokens().isEmpty)
    }
  }

  @Test func aDeadTokenDoesNotHideALivingOneOfTheSameApp() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      _ = try rig.apple.sign(.consentRevoked, of: Person(named: "ada"), for: RevokerRig.app)
      try await rig.signIn(at: 11)
      #expect(try await rig.tokens().count == 2)
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilDone(1)
      #expect(!rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app))
      #expect(rig.process.done == ["tokens-revoked": 1])
    }
  }

  @Test func whatIsStillValidAfterARevocationIsRevokedAgain() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      rig.apple.revocationsAnswer = .html  // 200, and nothing is done
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilFailed("still-valid")
      #expect(rig.process.done.isEmpty)
      #expect(try rig.said().isEmpty)
      #expect(try await rig.tokens().count == 1)
      rig.apple.revocationsAnswer = .tokens
      // Whoever validates more than once a day may be throttled.
      rig.process.alarm.advance(by: .seconds(59))
      await turn()
      #expect(rig.asked == 2)
      rig.process.alarm.advance(by: .seconds(1))
      try await rig.process.untilDone(1)
      #expect(rig.asked == 4)
      #expect(try rig.said() == ["event-20 tokens-revoked", "event-20 sessions-ended"])
    }
  }

  // MARK: Whose authorization it is

  /// Apple tells a sign-in in whole seconds: that of the event's second may be of a new authorization.
  @Test(arguments: [(AccountEvent.Kind.consentRevoked, true), (.accountDelete, true), (.credentialInvalid, false)])
  func whatMayBeYoungerThanAnEventOfApplesIsRevoked(_ kind: AccountEvent.Kind, _ isRevoked: Bool) async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 20)
      try rig.happen(kind, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      #expect(try await rig.tokens().isEmpty)
      #expect(rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app) == !isRevoked)
      #expect(rig.asked == (isRevoked ? 1 : 0))
    }
  }

  @Test func aNewSignInStaysWhateverIsSaidOfTheOldOne() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try rig.happen(.accountDelete, 20)
      try await rig.process.untilDone(1)
      try await rig.signIn(at: 30)
      try rig.happen(.accountDelete, 20)
      try rig.happen(.accountDelete, 20, id: "told-anew")
      try rig.happen(.accountDeletionRequested, 19)
      try rig.happen(.consentRevoked, 29)
      try await rig.process.untilDone(5)
      #expect(
        rig.process.done == [
          "tokens-revoked": 1, "repeated": 1, "superseded-newer-event": 2, "superseded-newer-sign-in": 1,
        ])
      #expect(
        try rig.said().dropFirst(2) == [
          "told-anew no-effect: superseded-by-newer-event", "event-19 no-effect: superseded-by-newer-event",
          "event-29 no-effect: superseded-by-newer-sign-in",
        ])
      #expect(try await rig.tokens().map(\.issuedAt) == [.event(30)])
      #expect(rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app))
      #expect(rig.asked == 0)
    }
  }

  @Test func aSignInThatBecomesKnownBeforeTheCallStopsIt() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn(at: 30)
      // As if the store had been asked before the second sign-in.
      let account = try RevokerRig.account("ada")
      let event = AccountEvent(
        id: try #require(EventID("event-20")), team: account.team, audience: try #require(ClientID(RevokerRig.app)),
        subject: account.subject, kind: .accountDeletionRequested, occurredAt: .event(20), issuedAt: .event(25))
      let reference = EventReference.of(event, rig.process.store, severity: 2)
      let failure = await #expect(throws: ConsumerFailure.self) {
        try await rig.process.revoker.process(Delivery(event: event, reference: reference))
      }
      #expect(failure == .waiting("overtaken", for: .zero))
      #expect(rig.asked == 0)
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["superseded-newer-sign-in": 1])
      #expect(try rig.said() == ["event-20 no-effect: superseded-by-newer-sign-in"])
    }
  }

  /// A sign-in that ends between the looks for it and for its tokens is seen by one of them.
  @Test(arguments: [AccountEvent.Kind.accountDeletionRequested, .consentRevoked])
  func aSignInThatEndsWhileItIsLookedForStopsIt(_ kind: AccountEvent.Kind) async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 20)
      let account = try RevokerRig.account("ada")
      let event = AccountEvent(
        id: try #require(EventID("event-20")), team: account.team, audience: try #require(ClientID(RevokerRig.app)),
        subject: account.subject, kind: kind, occurredAt: .event(20), issuedAt: .event(25))
      let store = WatchedStore(rig.process.store)
      // A deletion looks once before it reads what is held.
      let last = kind == .consentRevoked ? 1 : 2
      var looks = 0
      store.gate = { call in
        guard call == .signInUnderWay else { return }
        looks += 1
        guard looks == last else { return }
        do { try await rig.signIn(at: 30) } catch { Issue.record(error) }
      }
      let revoker = rig.process.revoker(on: store)
      do {
        _ = try await revoker.process(Delivery(event: event, reference: .of(event, rig.process.store, severity: 2)))
      } catch let failure as ConsumerFailure { #expect(failure == .waiting("overtaken", for: .zero)) }
      #expect(looks == last)
      #expect(rig.asked == 0 && rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app))
    }
  }

  @Test func theWholeTopicAgainAsksNobodyAnything() async throws {
    try await RevokerRig.run { rig in
      for (number, name) in ["ada", "bob", "cleo"].enumerated() { try await rig.signIn(name, at: number) }
      try rig.happen(.accountDeletionRequested, 20)
      try rig.happen(.consentRevoked, 21, to: "bob")
      try rig.happen(.accountDelete, 22, to: "cleo")
      try rig.happen(.consentRevoked, 23)
      try await rig.process.untilDone(4)
      let said = try rig.said()
      #expect(said.count == 7 && said.last == "event-23 no-effect: echo")
      // What it announced in the last second before it is killed is announced once more.
      try await until {
        rig.process.alarm.advance(by: .seconds(1))
        return rig.cluster.committed[.events(0)] == 4
      }
      rig.asked = 0
      try await rig.restart(rereading: true)
      try await rig.process.untilDone(4)
      #expect(rig.process.done == ["repeated": 4])
      #expect(try rig.said() == said)
      #expect(rig.asked == 0)
    }
  }
}
