import AccountEvents
import AccountStore
import EventLoop
import Testing

/// Sign-ins, tokens, and what is left of an account that was erased.
@Loop @Suite struct AccountTests {
  private let now = Sample.time(10_000)

  @Test(arguments: Implementation.all)
  func tokensAreKeptUntilTheyEnd(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      #expect(try await store.tokens(of: account) == [])
      _ = try await store.recordSignIn(
        account, at: Sample.time(20), tokens: [Sample.token(2), Sample.token(3, .access)])
      _ = try await store.recordSignIn(account, at: Sample.time(10), tokens: [Sample.token(1)])
      // Whoever does not know whether it has happened does it again.
      _ = try await store.recordSignIn(account, at: Sample.time(10), tokens: [Sample.token(1)])
      _ = try await store.recordSignIn(Sample.account(2), at: Sample.time(1), tokens: [Sample.token(1)])
      let kept = [
        StoredToken(Sample.token(1), issuedAt: Sample.time(10)),
        StoredToken(Sample.token(2), issuedAt: Sample.time(20)),
        StoredToken(Sample.token(3, .access), issuedAt: Sample.time(20)),
      ]
      #expect(try await store.tokens(of: account) == kept)
      let change = StoreChange.endTokens(issuedUpTo: Sample.time(19))
      _ = try await store.settle([Sample.event("a", at: 19).settled(by: Sample.revoker, change)], at: now)
      #expect(try await store.tokens(of: account) == Array(kept[1...]))
      let all = StoreChange.endTokens(issuedUpTo: Sample.time(20))
      _ = try await store.settle([Sample.event("b", at: 20).settled(by: Sample.revoker, all)], at: now)
      #expect(try await store.tokens(of: account) == [])
      #expect(try await store.tokens(of: Sample.account(2)).count == 1)
    }
  }

  /// The eraser waits for the revoker as long as there are tokens that an event ends.
  @Test(arguments: Implementation.all)
  func whetherTokensAreHeldIsKnownWithoutOpeningThem(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    let (account, other) = (Sample.account(), Sample.account(2))
    let web = Sample.valid(ClientID("com.example.web"))
    let token = NewToken(kind: .refresh, client: web, value: Sample.valid(SecretToken("token-of-web")))
    _ = try await store.recordSignIn(account, at: Sample.time(10), tokens: [Sample.token(1)])
    _ = try await store.recordSignIn(account, at: Sample.time(20), tokens: [token])
    try await prepared.breakKeys()
    func question(_ account: Account, _ seconds: Int64, _ clients: Set<ClientID>? = nil) -> TokenQuestion {
      TokenQuestion(of: account, issuedUpTo: Sample.time(seconds), clients: clients)
    }
    #expect(try await store.holdsTokens([]) == [])
    let questions: [(TokenQuestion, Bool)] = [
      (question(account, 9), false), (question(account, 10), true), (question(other, 30), false),
      (question(account, 19, [web]), false), (question(account, 20, [web]), true),
      (question(account, 10, [web, Sample.client]), true), (question(account, 30, []), false),
      (question(account, 10), true),
    ]
    #expect(try await store.holdsTokens(questions.map(\.0)) == questions.map(\.1))
    let end = Sample.event("a", at: 10).settled(by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(10)))
    _ = try await store.settle([end], at: now)
    #expect(try await store.holdsTokens([question(account, 19), question(account, 20)]) == [false, true])
    await store.close()
  }

  /// Apple sends the deletion of the old account again, or late: it must not touch the new one.
  @Test(arguments: Implementation.all)
  func anOldDeletionDoesNotTouchANewSignIn(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      func deletion(_ id: String, at seconds: Int64, by consumer: ConsumerName) -> Settlement {
        Sample.event(id, at: seconds, severity: 3, yieldsTo: [.signIn])
          .settled(
            by: consumer,
            consumer == Sample.eraser ? .eraseAccount(isFinal: true) : .endTokens(issuedUpTo: Sample.time(seconds)))
      }
      _ = try await store.recordSignIn(account, at: Sample.time(10), tokens: [Sample.token(1)])
      #expect(
        try await store.settle(
          [deletion("a", at: 20, by: Sample.revoker), deletion("a", at: 20, by: Sample.eraser)], at: now)
          == [.applied, .applied])
      #expect(try await store.tokens(of: account) == [])
      #expect(try await store.relayStates(of: [account]) == [.erased(since: Sample.time(20))])

      _ = try await store.recordSignIn(account, at: Sample.time(30), tokens: [Sample.token(2)])
      #expect(try await store.relayStates(of: [account]) == [.unknown])
      #expect(
        try await store.settle(
          [
            deletion("a", at: 20, by: Sample.eraser), deletion("b", at: 21, by: Sample.revoker),
            deletion("b", at: 21, by: Sample.eraser), deletion("c", at: 29, by: Sample.eraser),
          ], at: now) == [
            .repeated(deletion("a", at: 20, by: Sample.eraser).event.entry(at: now)), .superseded(.newerSignIn),
            .superseded(.newerSignIn), .superseded(.newerSignIn),
          ])
      #expect(
        try await store.tokens(of: account) == [StoredToken(Sample.token(2), issuedAt: Sample.time(30))])

      // A deletion of the new account counts, and the one of the old account stays void even without it.
      #expect(
        try await store.settle(
          [deletion("d", at: 40, by: Sample.eraser), deletion("e", at: 25, by: Sample.eraser)], at: now)
          == [.applied, .superseded(.newerEvent)])
      let late = Sample.event("f", at: 25, yieldsTo: [.signIn])
      #expect(
        try await store.standings(of: [late], for: Sample.revoker) == [.superseded(.newerSignIn)],
        "its own deletion of second 20 does not cover it, the sign-in does")
      #expect(try await store.tokens(of: account) == [])
    }
  }

  /// A sign-in that becomes known late, after what has made it void.
  @Test(arguments: Implementation.all)
  func tokensThatWereOverBeforeTheyBecameKnownAreNotKept(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let (account, tokens) = (Sample.account(), [Sample.token(1), Sample.token(2, .access)])
      let ended = Sample.event("a", at: 20).settled(by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(20)))
      #expect(try await store.settle([ended], at: now) == [.applied])
      for seconds in [19, 20] as [Int64] {
        #expect(try await store.recordSignIn(account, at: Sample.time(seconds), tokens: tokens) == tokens)
        #expect(try await store.tokens(of: account) == [])
      }
      #expect(try await store.recordSignIn(account, at: Sample.time(21), tokens: tokens) == [])
      #expect(try await store.tokens(of: account).count == 2)
      // The older of two ends does not take back the later one.
      let older = Sample.event("b", at: 10).settled(by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(10)))
      _ = try await store.settle([older], at: now)
      #expect(
        try await store.recordSignIn(account, at: Sample.time(15), tokens: [Sample.token(3)]) == [Sample.token(3)])

      // Who was erased begins anew with a sign-in after it; of one before it nothing is kept, the account neither.
      let erasure = Sample.event("c", at: 30).settled(by: Sample.eraser, .eraseAccount(isFinal: false))
      _ = try await store.settle([erasure], at: now)
      for seconds in [25, 30] as [Int64] {
        #expect(try await store.recordSignIn(account, at: Sample.time(seconds), tokens: tokens) == tokens)
        #expect(try await store.relayStates(of: [account]) == [.erased(since: Sample.time(30))])
      }
      #expect(try await store.recordSignIn(account, at: Sample.time(31), tokens: tokens) == [])
      #expect(try await store.tokens(of: account).count == 2)
      #expect(try await store.recordSignIn(Sample.account(2), at: Sample.time(1), tokens: tokens) == [], "another's")
    }
  }

  @Test(arguments: Implementation.all)
  func tokensAreEndedOfSomeAppsAlone(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      let apps = ["com.example.one", "com.example.two", "com.example.three"].map { Sample.valid(ClientID($0)) }
      let tokens = apps.map { NewToken(kind: .refresh, client: $0, value: Sample.valid(SecretToken("token-of-\($0)"))) }
      #expect(try await store.recordSignIn(account, at: Sample.time(10), tokens: tokens) == [])
      let some = StoreChange.endTokens(issuedUpTo: Sample.time(20), of: [apps[0], apps[2]])
      _ = try await store.settle([Sample.event("a", at: 20).settled(by: Sample.revoker, some)], at: now)
      #expect(try await store.tokens(of: account).map(\.token) == [tokens[1]])
      #expect(try await store.recordSignIn(account, at: Sample.time(15), tokens: tokens) == [tokens[0], tokens[2]])
      #expect(try await store.tokens(of: account) == [StoredToken(tokens[1], issuedAt: Sample.time(15))])
      // In one transaction with the end of all.
      let all = Sample.event("b", at: 30).settled(by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(30)))
      let one = StoreChange.endTokens(issuedUpTo: Sample.time(40), of: [apps[0]])
      _ = try await store.settle([all, Sample.event("c", at: 40).settled(by: Sample.revoker, one)], at: now)
      #expect(try await store.tokens(of: account) == [])
      #expect(try await store.recordSignIn(account, at: Sample.time(35), tokens: tokens) == [tokens[0]])
    }
  }

  @Test(arguments: Implementation.all)
  func anErasureEndsAllThatWasKnown(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let (account, other) = (Sample.account(), Sample.account(2))
      for person in [account, other] {
        _ = try await store.recordSignIn(
          person, at: Sample.time(1), tokens: [Sample.token(1), Sample.token(2, .access)])
      }
      _ = try await store.settle(
        [
          Sample.event("a", at: 2).settled(.setRelay(Sample.enabled(2))),
          Sample.event("b", of: other, at: 2).settled(.setRelay(Sample.disabled(2, 2))),
          Sample.event("c", at: 3).settled(
            by: Sample.eraser, .noteOwnRevocation(of: Sample.client, isProven: true), .eraseAccount(isFinal: false)),
        ], at: now)
      #expect(try await store.tokens(of: account) == [])
      #expect(try await store.tokens(of: other).count == 2)
      #expect(
        try await store.relayStates(of: [account, other, Sample.account(3)]) == [
          .erased(since: Sample.time(3)), .known(Sample.disabled(2, 2)), .unknown,
        ])
      // Its Apple Account is still there: what Apple says of it later is known again.
      let later = Sample.event("d", at: 4, yieldsTo: [.erasure]).settled(.setRelay(Sample.enabled(4)))
      #expect(try await store.settle([later], at: now) == [.applied])
      #expect(try await store.relayStates(of: [account]) == [.known(Sample.enabled(4))])
    }
  }

  /// Somebody comes back before their erasure is done: what is of their new time stays theirs.
  @Test(
    arguments: Implementation.all,
    [
      // Seconds of sign-ins, each with a token; since when mail is enabled; whether the erasure of second 10 is final.
      (signIns: [5], relay: 9, isFinal: false, tokens: [], spared: false),
      (signIns: [5], relay: 10, isFinal: false, tokens: [], spared: false),
      (signIns: [5], relay: 11, isFinal: false, tokens: [], spared: true),
      (signIns: [], relay: 11, isFinal: false, tokens: [], spared: true),
      (signIns: [5], relay: 11, isFinal: true, tokens: [], spared: false),
      (signIns: [5, 12], relay: 9, isFinal: false, tokens: [12], spared: false),
      (signIns: [5, 12], relay: 11, isFinal: true, tokens: [12], spared: true),
      (signIns: [5, 10], relay: 9, isFinal: true, tokens: [], spared: false),
    ] as [(signIns: [Int64], relay: Int64, isFinal: Bool, tokens: [Int64], spared: Bool)])
  func anErasureLeavesWhatIsYounger(
    _ implementation: Implementation,
    _ example: (signIns: [Int64], relay: Int64, isFinal: Bool, tokens: [Int64], spared: Bool)
  ) async throws {
    try await PreparedStore.with(implementation) { store throws in
      // In two transactions, and in one.
      for (account, isOne) in [(Sample.account(1), false), (Sample.account(2), true)] {
        for seconds in example.signIns {
          let token = NewToken(
            kind: .refresh, client: Sample.client, value: Sample.valid(SecretToken("token-of-\(seconds)")))
          _ = try await store.recordSignIn(account, at: Sample.time(seconds), tokens: [token])
        }
        let relay = Sample.event("relay-\(isOne)", of: account, at: example.relay)
          .settled(.setRelay(Sample.enabled(example.relay)))
        // It is heedless of sign-ins: whoever is not sees none of the younger ones.
        let erasure = Sample.event("erasure-\(isOne)", of: account, at: 10, severity: 1)
          .settled(by: Sample.eraser, .eraseAccount(isFinal: example.isFinal))
        for group in isOne ? [[relay, erasure]] : [[relay], [erasure]] { _ = try await store.settle(group, at: now) }
        #expect(try await store.tokens(of: account).map(\.issuedAt) == example.tokens.map(Sample.time))
        let isBack = example.signIns.contains { $0 > 10 }
        let state = try await store.relayStates(of: [account])[0]
        if example.spared {
          #expect(state == .known(Sample.enabled(example.relay)))
        } else {
          #expect(state == (isBack ? .unknown : .erased(since: Sample.time(10))))
        }

        // What it has left is erased by the next one; an older one changes nothing of it.
        let older = Sample.event("older-\(isOne)", of: account, at: 8, severity: 2)
          .settled(by: Sample.eraser, .eraseAccount(isFinal: false))
        _ = try await store.settle([older], at: now)
        #expect(try await store.relayStates(of: [account])[0] == state)
        #expect(try await store.tokens(of: account).count == example.tokens.count)
        let next = Sample.event("next-\(isOne)", of: account, at: 30, severity: 1)
          .settled(by: Sample.eraser, .eraseAccount(isFinal: true))
        _ = try await store.settle([next], at: now)
        #expect(try await store.relayStates(of: [account]) == [.erased(since: Sample.time(30))])
        #expect(try await store.tokens(of: account) == [])
      }
    }
  }

  /// Three of one account in one transaction: each finds what those before it have left.
  @Test(arguments: Implementation.all)
  func erasuresInOneTransactionLeaveWhatIsYoungerThanAllOfThem(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      for seconds in [12, 25] as [Int64] {
        let token = NewToken(
          kind: .refresh, client: Sample.client, value: Sample.valid(SecretToken("token-of-\(seconds)")))
        _ = try await store.recordSignIn(account, at: Sample.time(seconds), tokens: [token])
      }
      func erasure(_ seconds: Int64) -> Settlement {
        Sample.event("erasure-\(seconds)", at: seconds, severity: 1)
          .settled(by: Sample.eraser, .eraseAccount(isFinal: false))
      }
      let (one, other) = (
        Sample.event("one", at: 15).settled(.setRelay(Sample.enabled(15))),
        Sample.event("other", at: 26).settled(.setRelay(Sample.disabled(26)))
      )
      _ = try await store.settle([one, erasure(10), erasure(20), other, erasure(24)], at: now)
      #expect(try await store.tokens(of: account).map(\.issuedAt) == [Sample.time(25)])
      #expect(try await store.relayStates(of: [account]) == [.known(Sample.disabled(26))])
    }
  }

  @Test(arguments: Implementation.all)
  func theStepsOfAnErasureAreThoseOfItsTargets(_ implementation: Implementation) async throws {
    func step(_ target: String, _ state: ErasureStep.State, _ seconds: Int64, count: Int? = 3) -> ErasureStep {
      ErasureStep(
        target: target, state: state, before: count, affected: count, after: count.map { _ in 0 }, detail: "said so",
        time: Sample.time(seconds))
    }
    try await PreparedStore.with(implementation) { store throws in
      let event = Sample.event("a", at: 1)
      #expect(try await store.erasureSteps(of: event.id) == [])
      try await store.record(step("orders", .failed, 1), of: event)
      try await store.record(step("mails", .retained, 2, count: nil), of: event)
      try await store.record([
        (step("orders", .erased, 3), event), (step("orders", .erased, 4), Sample.event("b", at: 1)),
      ])
      let ids = try ["b", "c", "a"].map { try #require(EventID($0)) }
      #expect(
        try await store.erasureSteps(of: ids) == [
          [step("orders", .erased, 4)], [], [step("orders", .erased, 3), step("mails", .retained, 2, count: nil)],
        ])
    }
  }

  @Test(arguments: Implementation.all)
  func aStepIsRecordedWithASettlementWhateverBecomesOfThat(_ implementation: Implementation) async throws {
    func step(_ seconds: Int64) -> ErasureStep {
      ErasureStep(
        target: "orders", state: .erased, before: 3, affected: 3, after: 0, detail: "", time: Sample.time(seconds))
    }
    func settled(_ id: String, at seconds: Int64) -> Settlement {
      let event = Sample.event(id, at: seconds, severity: 2)
      return Settlement(
        of: event, by: Sample.eraser, outcome: "done", changes: [.eraseAccount(isFinal: true)], steps: [step(seconds)])
    }
    try await PreparedStore.with(implementation) { store throws in
      let begun = ErasureStep(
        target: "orders", state: .begun, before: 3, affected: nil, after: nil, detail: "", time: Sample.time(1))
      try await store.record(begun, of: Sample.event("a", at: 2))
      let outcomes = try await store.settle([settled("a", at: 2), settled("b", at: 1)], at: now)
      #expect(outcomes == [.applied, .superseded(.newerEvent)])
      let ids = try ["a", "b"].map { try #require(EventID($0)) }
      #expect(try await store.erasureSteps(of: ids) == [[step(2)], [step(1)]])
    }
  }

  /// An operator decides while a target is asked.
  @Test(arguments: Implementation.all)
  func whatWasDiscardedIsNotOpenedAgainByWhatWasUnderWay(_ implementation: Implementation) async throws {
    func step(_ target: String, _ state: ErasureStep.State, _ detail: String = "") -> ErasureStep {
      ErasureStep(target: target, state: state, before: nil, affected: nil, after: nil, detail: detail, time: now)
    }
    try await PreparedStore.with(implementation) { store throws in
      let event = Sample.event("a", at: 1)
      for target in ["mails", "orders"] { try await store.record(step(target, .begun), of: event) }
      #expect(try await store.discardErasure(of: event.id, account: nil, target: "mails", note: "bob", at: now) == 1)
      for state in [ErasureStep.State.begun, .failed, .retained] {
        try await store.record([(step("mails", state), event), (step("orders", .failed), event)])
        #expect(
          try await store.erasureSteps(of: event.id) == [step("mails", .discarded, "bob"), step("orders", .failed)])
      }
      try await store.record(step("mails", .erased), of: event)
      #expect(
        try await store.erasureSteps(of: event.id) == [step("mails", .erased), step("orders", .failed)],
        "it was erased after all")
    }
  }

  @Test(arguments: Implementation.all)
  func whatErasuresHaveNotEndedIsOpenUntilTheyHave(_ implementation: Implementation) async throws {
    func step(_ target: String, _ state: ErasureStep.State, _ seconds: Int64) -> ErasureStep {
      ErasureStep(
        target: target, state: state, before: nil, affected: nil, after: nil,
        detail: state == .failed ? "not-now" : "", time: Sample.time(seconds))
    }
    try await PreparedStore.with(implementation) { store throws in
      func open(after place: OpenErasure.Place? = nil, limit: Int = 10) async throws -> [OpenErasure] {
        try await store.openErasures(by: Sample.eraser, after: place, limit: limit)
      }
      let events = (0..<3).map { Sample.event("event-\($0)", of: Sample.account($0), at: 1) }
      #expect(try await open() == [])
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 0)
      try await store.record(step("orders", .begun, 5), of: events[0])
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 0, "nothing has failed")
      for (target, state) in [("mails", ErasureStep.State.failed), ("orders", .failed), ("search", .erased)] {
        try await store.record(step(target, state, 7), of: events[1])
      }
      try await store.record(step("orders", .retained, 7), of: events[2])
      func attempt(_ seconds: Int64) -> FailedAttempt {
        FailedAttempt(at: events[1], by: Sample.eraser, cause: "targets-incomplete", time: Sample.time(seconds))
      }
      for seconds in [6, 20] as [Int64] { _ = try await store.count([attempt(seconds)]) }
      // It is tried again.
      try await store.record(step("orders", .begun, 30), of: events[1])
      func expected(_ number: Int, _ target: String, _ state: ErasureStep.State, since: Int64) -> OpenErasure {
        OpenErasure(
          OpenErasure.Place(event: events[number].id, target: target), account: store.hash(of: events[number].account),
          state: state, cause: state == .failed ? "not-now" : "", attempts: number == 1 ? 2 : 0,
          since: Sample.time(since))
      }
      let all = [
        expected(0, "orders", .begun, since: 5), expected(1, "mails", .failed, since: 6),
        expected(1, "orders", .begun, since: 6),
      ]
      #expect(try await open() == all)
      #expect(try await open(limit: 2) == Array(all[..<2]))
      #expect(try await open(after: all[1].place) == [all[2]])
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 1)

      // Whatever is said of targets that the policy does not name any more, what is settled is over.
      _ = try await store.settle([events[0].settled(by: Sample.eraser)], at: now)
      func discard(_ target: String?, _ note: String) async throws -> Int {
        try await store.discardErasure(of: events[1].id, account: nil, target: target, note: note, at: now)
      }
      #expect(try await discard("search", "nobody") == 0, "what is erased stays so")
      #expect(try await discard("mails", "bob: gone with its server") == 1)
      #expect(try await open() == [all[2]])
      #expect(try await discard(nil, "bob") == 1)
      #expect(try await discard(nil, "bob") == 0)
      #expect(try await open() == [])
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 0)
      let states = try await store.erasureSteps(of: events[1].id).map { "\($0.target) \($0.state) \($0.detail)" }
      #expect(
        Set(states) == ["mails discarded bob: gone with its server", "orders discarded bob", "search erased "])
    }
  }

  @Test(arguments: Implementation.all)
  func whatAnErasureHasLeftIsCoveredByOneThatOutweighsItAndHasEndedThere(_ implementation: Implementation) async throws
  {
    func step(_ target: String, _ state: ErasureStep.State) -> ErasureStep {
      ErasureStep(target: target, state: state, before: nil, affected: nil, after: nil, detail: "", time: now)
    }
    try await PreparedStore.with(implementation) { store throws in
      let (earlier, event, later) = (Sample.event("z", at: 1), Sample.event("m", at: 2), Sample.event("a", at: 3))
      let other = Sample.event("other", of: Sample.account(2), at: 4)
      func left() async throws -> [[String]] { try await store.uncoveredTargets(of: [later, event]) }
      for target in ["shop", "search", "mails", "orders"] { try await store.record(step(target, .erased), of: earlier) }
      #expect(try await left() == [[], []], "nothing was begun")
      for (target, state) in [
        ("shop", ErasureStep.State.failed), ("search", .begun), ("mails", .failed), ("orders", .erased),
      ] { try await store.record(step(target, state), of: event) }
      for target in ["shop", "search", "mails"] { try await store.record(step(target, .erased), of: other) }
      // The earlier one is tried again.
      try await store.record(step("shop", .erased), of: earlier)
      #expect(try await left() == [[], ["shop", "search", "mails"]])
      for (target, state) in [("shop", ErasureStep.State.failed), ("search", .retained), ("mails", .discarded)] {
        try await store.record(step(target, state), of: later)
      }
      #expect(try await left() == [["shop"], ["shop"]])
      // Of the same time, and less severe; then of no less severity, whichever came to the target first.
      let (mild, severe) = (Sample.event("mild", at: 2), Sample.event("severe", at: 2, severity: 2))
      func left(_ event: EventReference) async throws -> [String] { try await store.uncoveredTargets(of: [event])[0] }
      try await store.record(step("shop", .failed), of: severe)
      try await store.record(step("shop", .erased), of: mild)
      #expect(try await left() == [["shop"], []])
      #expect(try await left(severe) == ["shop"])
      try await store.record(step("shop", .erased), of: severe)
      try await store.record(step("shop", .failed), of: Sample.event("late", at: 1, severity: 2))
      #expect(try await left(Sample.event("late", at: 1, severity: 2)) == [])
      #expect(try await left(Sample.event("a", at: 3)) == ["shop"])
    }
  }

  /// Whoever may write to the topic can name the id of somebody else's event.
  @Test(arguments: Implementation.all)
  func nothingOfAnAccountCoversOrClosesWhatAnEventOfTheSameIDHasLeftOfAnother(_ implementation: Implementation)
    async throws
  {
    func step(_ state: ErasureStep.State) -> ErasureStep {
      ErasureStep(target: "shop", state: state, before: nil, affected: nil, after: nil, detail: "", time: now)
    }
    try await PreparedStore.with(implementation) { store throws in
      let genuine = Sample.event("a", of: Sample.account(1), at: 2)
      let forged = Sample.event("a", of: Sample.account(2), at: 1)
      let own = Sample.event("b", of: Sample.account(2), at: 3)
      try await store.record(step(.failed), of: genuine)
      try await store.record(step(.erased), of: own)
      #expect(try await store.uncoveredTargets(of: [forged, genuine]) == [["shop"], ["shop"]])
      func discard(_ account: Account) async throws -> Int {
        try await store.discardErasure(of: genuine.id, account: account, target: nil, note: "eve", at: now)
      }
      #expect(try await discard(forged.account) == 0)
      #expect(try await store.erasureSteps(of: genuine.id) == [step(.failed)])
      #expect(try await discard(genuine.account) == 1)
    }
  }

  @Test(arguments: Implementation.all)
  func whatATargetIsAtWorkOnIsWaitedForAndHasNotFailed(_ implementation: Implementation) async throws {
    func step(_ target: String, _ state: ErasureStep.State, _ detail: String) -> ErasureStep {
      ErasureStep(target: target, state: state, before: nil, affected: nil, after: nil, detail: detail, time: now)
    }
    try await PreparedStore.with(implementation) { store throws in
      let event = Sample.event("a", at: 1)
      try await store.record(step("mails", .begun, ErasureStep.inProgress), of: event)
      // Another target had failed before.
      _ = try await store.count([FailedAttempt(at: event, by: Sample.eraser, cause: "targets-incomplete", time: now)])
      #expect(try await store.erasuresInProgress(by: Sample.eraser) == 1)
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 0)
      #expect(try await store.openErasures(by: Sample.eraser, after: nil, limit: 9).map(\.cause) == ["in-progress"])
      try await store.record(step("mails", .failed, "not-now"), of: event)
      #expect(try await store.erasuresInProgress(by: Sample.eraser) == 0)
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 1)
      try await store.record(step("mails", .begun, ErasureStep.inProgress), of: event)
      _ = try await store.settle([event.settled(by: Sample.eraser)], at: now)
      #expect(try await store.erasuresInProgress(by: Sample.eraser) == 0)
    }
  }

  @Test(arguments: Implementation.all)
  func whatWasRetainedIsDueFromItsDayOnUntilItIsClosed(_ implementation: Implementation) async throws {
    // 2027-01-15
    let today = try #require(Timestamp(milliseconds: 1_800_000_000_000))
    func retained(_ detail: String) -> ErasureStep {
      ErasureStep(
        target: "invoices", state: .retained, before: nil, affected: nil, after: nil, detail: detail, time: now)
    }
    try await PreparedStore.with(implementation) { store throws in
      func due(_ number: Int? = nil, after place: OpenErasure.Place? = nil, limit: Int = 9) async throws -> [String] {
        let account = number.map { Sample.account($0) }
        return try await store.dueErasures(until: today, of: account, after: place, limit: limit).map {
          "\($0.place.event) \($0.place.target) \($0.account == store.hash(of: Sample.account(1)) ? "1" : "-") \($0.detail)"
        }
      }
      let events = (0..<3).map { Sample.event("event-\($0)", of: Sample.account($0), at: 1) }
      for (event, day) in zip(events, ["2027-01-15", "2026-12-31", "2027-01-16"]) {
        try await store.record(retained("§ 147 AO, until \(day)"), of: event)
      }
      let all = ["event-0 invoices - § 147 AO, until 2027-01-15", "event-1 invoices 1 § 147 AO, until 2026-12-31"]
      #expect(try await due() == all)
      #expect(try await due(limit: 1) == [all[0]])
      #expect(try await due(after: OpenErasure.Place(event: events[0].id, target: "invoices")) == [all[1]])
      #expect(try await due(1) == [all[1]])
      #expect(try await due(2) == [], "its day has not come")
      func close(_ number: Int, _ target: String?) async throws -> Int {
        try await store.discardErasure(
          of: events[number].id, account: nil, target: target, note: "bob: shredded", at: today)
      }
      #expect(try await close(0, nil) == 0, "a retention is closed by its name")
      #expect(try await close(2, "invoices") == 0)
      #expect(try await close(0, "invoices") == 1)
      #expect(try await due() == [all[1]])
    }
  }

  @Test(arguments: Implementation.all)
  func aHashStandsForOneAccountInOneStore(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (first, again) = (try await prepared.open(), try await prepared.open())
    let other = try await implementation.prepare(hashKey: nil).open()
    #expect(first.hash(of: Sample.account()) == again.hash(of: Sample.account()))
    #expect(first.hash(of: Sample.account()) != first.hash(of: Sample.account(2)))
    #expect(first.hash(of: Sample.account()) != other.hash(of: Sample.account()))
    for store in [first, again, other] { await store.close() }
  }
}
