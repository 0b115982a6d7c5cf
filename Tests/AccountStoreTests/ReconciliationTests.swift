import AccountEvents
import AccountStore
import EventLoop
import Testing

/// A store that was restored, and what Kafka says was over since its backup was made.
@Loop @Suite struct ReconciliationTests {
  private let now = Sample.time(10_000)

  private func outcome(
    of account: Account = Sample.account(), at seconds: Int64, by consumer: ConsumerName = Sample.eraser,
    _ ending: RecordedOutcome.Ending?, in store: any AccountStore
  ) -> RecordedOutcome {
    RecordedOutcome(
      account: store.hash(of: account), consumer: consumer, event: Sample.valid(EventID("event-\(seconds)")),
      at: Sample.time(seconds), ending: ending)
  }

  @Test(arguments: Implementation.all)
  func whoWasErasedSinceTheBackupIsErasedAgain(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...2)
      let (account, other, unknown) = (Sample.account(1), Sample.account(2), Sample.account(3))
      let outcomes = [
        outcome(at: 9, .erased(isFinal: true), in: store),
        outcome(of: unknown, at: 9, .erased(isFinal: true), in: store),
        outcome(of: other, at: 9, nil, in: store),
      ]
      var expected = Reconciliation()
      expected.erased = [store.hash(of: account)]
      expected.fenced = [store.hash(of: account), store.hash(of: unknown)]
      #expect(try await store.reconcile(with: outcomes, isRehearsal: true) == expected)
      #expect(try await store.relayStates(of: [account]) == [.known(Sample.enabled(2))], "nothing was changed")
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == expected)
      #expect(
        try await store.relayStates(of: [account, other, unknown]) == [
          .erased(since: Sample.time(9)), .known(Sample.enabled(2, 2)), .erased(since: Sample.time(9)),
        ])
      #expect(try await store.tokens(of: account) == [])
      #expect(try await store.tokens(of: other).count == 1)
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == Reconciliation(), "it is done")
      #expect(try await store.reconcile(with: [], isRehearsal: false) == Reconciliation())

      // Nothing brings either back but a sign-in.
      for person in [account, unknown] {
        let late = Sample.event("late", of: person, at: 20, yieldsTo: [.erasure])
        #expect(try await store.standings(of: [late], for: Sample.relay) == [.superseded(.erased)])
        #expect(try await store.recordSignIn(person, at: Sample.time(9), tokens: [Sample.token(4)]).count == 1)
        #expect(try await store.recordSignIn(person, at: Sample.time(21), tokens: [Sample.token(5)]) == [])
      }
      // Who has begun anew since is not the one that the outcome speaks of.
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == Reconciliation())
      #expect(try await store.tokens(of: account).map(\.issuedAt) == [Sample.time(21)])
    }
  }

  @Test(arguments: Implementation.all)
  func whatIsYoungerThanAnErasureStays(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      for seconds in [1, 30] as [Int64] {
        let token = NewToken(
          kind: .refresh, client: Sample.client, value: Sample.valid(SecretToken("token-of-\(seconds)")))
        _ = try await store.recordSignIn(account, at: Sample.time(seconds), tokens: [token])
      }
      _ = try await store.settle([Sample.event("a", at: 40).settled(.setRelay(Sample.enabled(40)))], at: now)
      // Whichever is told first, and however often.
      let outcomes = [
        outcome(at: 20, .erased(isFinal: true), in: store), outcome(at: 10, .erased(isFinal: false), in: store),
        outcome(at: 20, by: Sample.relay, .mailForgotten(isFinal: true), in: store),
      ]
      let changed = try await store.reconcile(with: outcomes.reversed(), isRehearsal: false)
      #expect(changed.erased.count == 1 && changed.mail.isEmpty)
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == Reconciliation())
      #expect(try await store.tokens(of: account).map(\.issuedAt) == [Sample.time(30)])
      #expect(try await store.relayStates(of: [account]) == [.known(Sample.enabled(40))])
    }
  }

  /// Since when the store has its state, what is told of second 10, and whether the store forgets it.
  @Test(
    arguments: Implementation.all,
    [
      (9, .mailForgotten(isFinal: false), true), (10, .mailForgotten(isFinal: false), true),
      (11, .mailForgotten(isFinal: false), false), (11, .mailForgotten(isFinal: true), true),
      // Which one it became, the outcome does not say: unknown is not enabled.
      (9, .mailChanged, true), (10, .mailChanged, false), (11, .mailChanged, false), (9, .tokensEnded, false),
    ] as [(since: Int64, ending: RecordedOutcome.Ending, isForgotten: Bool)])
  func aStateOfMailThatIsNotTheLastIsForgotten(
    _ implementation: Implementation, _ example: (since: Int64, ending: RecordedOutcome.Ending, isForgotten: Bool)
  ) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let state = Sample.disabled(example.since)
      _ = try await store.settle([Sample.event("a", at: example.since).settled(.setRelay(state))], at: now)
      let outcomes = [outcome(at: 10, by: Sample.relay, example.ending, in: store)]
      let changed = try await store.reconcile(with: outcomes, isRehearsal: false)
      #expect(changed.mail.isEmpty != example.isForgotten && changed.erased.isEmpty)
      let left: RelayKnowledge =
        example.ending == .mailForgotten(isFinal: true) ? .erased(since: Sample.time(10)) : .unknown
      #expect(try await store.relayStates(of: [Sample.account()]) == [example.isForgotten ? left : .known(state)])
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == Reconciliation())
    }
  }

  @Test(arguments: Implementation.all)
  func anAccountOfWhichOnlyForgottenMailWasLeftIsErasedWithIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(10), tokens: [])
      let changes: [(Int64, StoreChange)] = [(11, .eraseAccount(isFinal: false)), (12, .setRelay(Sample.enabled(12)))]
      for (seconds, change) in changes {
        _ = try await store.settle([Sample.event("event-\(seconds)", at: seconds).settled(change)], at: now)
      }
      let outcomes = [
        outcome(at: 8, .erased(isFinal: true), in: store),
        outcome(at: 14, by: Sample.relay, .mailForgotten(isFinal: false), in: store),
      ]
      let changed = try await store.reconcile(with: outcomes, isRehearsal: false)
      #expect(changed.erased.count == 1 && changed.mail.count == 1)
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == Reconciliation(), "it is done")
    }
  }

  @Test(arguments: Implementation.all)
  func tokensThatADeletionHasEndedAreEnded(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      for seconds in [10, 11] as [Int64] {
        let token = NewToken(
          kind: .refresh, client: Sample.client, value: Sample.valid(SecretToken("token-of-\(seconds)")))
        _ = try await store.recordSignIn(account, at: Sample.time(seconds), tokens: [token])
      }
      let outcomes = [outcome(at: 10, by: Sample.revoker, .tokensEnded, in: store)]
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false).tokens == [store.hash(of: account)])
      #expect(try await store.tokens(of: account).map(\.issuedAt) == [Sample.time(11)])
      #expect(
        try await store.recordSignIn(account, at: Sample.time(9), tokens: [Sample.token(9)]) == [Sample.token(9)],
        "nor are they kept where they become known later")
      #expect(try await store.reconcile(with: outcomes, isRehearsal: false) == Reconciliation())
    }
  }

  @Test(arguments: Implementation.all)
  func anotherStoresOutcomesAreNotRecognized(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await PreparedStore.with(implementation, hashKey: nil) { other throws in
        for store in [store, other] {
          let event = Sample.event("event-5", hash: store.hash(of: Sample.account()), at: 5)
          _ = try await store.settle([event.settled(by: Sample.relay)], at: now)
        }
        let own = outcome(at: 5, by: Sample.relay, nil, in: store)
        let foreign = outcome(at: 5, by: Sample.relay, nil, in: other)
        #expect(try await store.recognizes([foreign, own]))
        #expect(try await !store.recognizes([foreign]), "the same event, under another key")
        #expect(try await !store.recognizes([outcome(at: 6, by: Sample.relay, nil, in: store)]), "another event")
        #expect(try await !store.recognizes([outcome(at: 5, by: Sample.eraser, nil, in: store)]), "another consumer's")
        // Whoever is known without an event, too.
        _ = try await store.recordSignIn(Sample.account(2), at: Sample.time(1), tokens: [])
        #expect(
          try await store.recognizes([outcome(of: Sample.account(2), at: 6, .erased(isFinal: true), in: store)]))
      }
    }
  }
}
