import AccountEvents
import AccountStore
import EventLoop
import Testing

/// Settled once, wholly or not at all, whoever asks and how often.
@Loop @Suite struct SettlementTests {
  private let now = Sample.time(1000)

  @Test(arguments: Implementation.all)
  func anEventIsSettledOnceForEachConsumer(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let event = Sample.event("a", at: 1)
      let settlement = event.settled(detail: "what was done", .setRelay(Sample.enabled(1)))
      let entry = event.entry(detail: "what was done", at: now)
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.open(FailedAttempts())])
      #expect(try await store.settle([settlement, settlement], at: now) == [.applied, .repeated(entry)])
      #expect(try await store.settle([settlement], at: Sample.time(2000)) == [.repeated(entry)])
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.settled(entry)])
      #expect(try await store.standings(of: [event], for: Sample.revoker) == [.open(FailedAttempts())])
      #expect(try await store.settle([event.settled(by: Sample.revoker)], at: now) == [.applied])
      #expect(try await store.relayStates(of: [Sample.account()]) == [.known(Sample.enabled(1))])
    }
  }

  /// What is said again of an event is said of the record that it was settled from, and of no copy.
  @Test(arguments: Implementation.all, [false, true])
  func anEventThatComesAgainFromElsewhereIsNamedWithItsFirstOrigin(
    _ implementation: Implementation, isOne: Bool
  ) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let event = Sample.event("a", at: 1, partition: 3, offset: 41)
      let copy = Sample.event("a", at: 1, partition: 3, offset: 42)
      let retried = EventReference(
        id: event.id, account: event.account, hash: event.hash, occurredAt: event.occurredAt,
        origin: EventOrigin(topic: "apple.account-events.email-relay.retry.v1", partition: 3, offset: 41),
        weight: event.weight, yieldsTo: [])
      let settlements = [event, copy, retried].map { $0.settled() }
      var outcomes: [SettledOutcome] = []
      for group in isOne ? [settlements] : settlements.map({ [$0] }) {
        outcomes += try await store.settle(group, at: now)
      }
      let entry = event.entry(at: now)
      #expect(outcomes == [.applied, .repeated(entry), .repeated(entry)])
      #expect(entry.origin != copy.origin && entry.origin != retried.origin)
    }
  }

  @Test(arguments: Implementation.all)
  func whatIsSupersededIsInTheLedgerWithoutADetail(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let (later, event) = (Sample.event("later", at: 2), Sample.event("a", at: 1))
      let settlement = event.settled(detail: "what was not done")
      let entry = event.entry("superseded:newer-event", at: now)
      #expect(
        try await store.settle([later.settled(), settlement, settlement], at: now)
          == [.applied, .superseded(.newerEvent), .repeated(entry)])
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.settled(entry)])
    }
  }

  @Test(arguments: Implementation.all)
  func whatIsNotVoidAnyMoreIsNotNotedAsVoid(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let event = Sample.event("a", at: 3, yieldsTo: [.erasure])
      let gone = Sample.event("b", at: 1)
      _ = try await store.settle([gone.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.superseded(.erased)])
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(2), tokens: [])
      let void = Settlement(ofVoid: event, by: Sample.relay)
      #expect(try await store.settle([void, void], at: now) == [.open, .open])
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.open(FailedAttempts())])
      // The fence does not stand either.
      let later = Sample.event("c", at: 4)
      #expect(
        try await store.settle([later.settled(), void, void], at: now)
          == [
            .applied, .superseded(.newerEvent), .repeated(event.entry("superseded:newer-event", at: now)),
          ])
    }
  }

  @Test(arguments: Implementation.all)
  func repeatingEverythingChangesNothing(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      var settlements: [Settlement] = []
      for number in 0..<600 {
        let account = Sample.account(number % 100)
        let event = Sample.event("event-\(number)", of: account, at: Int64(number * 7919 % 600))
        settlements.append(
          event.settled(
            .setRelay(Sample.enabled(event.occurredAt.milliseconds / 1000 - 1_800_000_000, number))))
      }
      let outcomes = try await store.settle(settlements, at: now)
      let accounts = (0..<100).map(Sample.account)
      let states = try await store.relayStates(of: accounts)
      #expect(Set(outcomes) == [.applied, .superseded(.newerEvent)])
      for order in [settlements, settlements.reversed()] {
        let outcomes = try await store.settle(order, at: now)
        #expect(outcomes.allSatisfy { $0.isRepeated })
      }
      #expect(try await store.relayStates(of: accounts) == states)
      for (number, state) in states.enumerated() {
        let last = (0..<6).map { Int64((number + 100 * $0) * 7919 % 600) }.max() ?? 0
        guard case .known(let known) = state else {
          Issue.record("nothing is known")
          continue
        }
        #expect(known.since == Sample.time(last))
      }
    }
  }

  @Test(arguments: Implementation.all)
  func attemptsAreCountedUntilTheEventIsSettled(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (event, other) = (Sample.event("b", at: 1), Sample.event("a", of: Sample.account(2), at: 1))
    func attempt(at event: EventReference, _ seconds: Int64) -> FailedAttempt {
      FailedAttempt(at: event, by: Sample.revoker, cause: "apple-unavailable", time: Sample.time(seconds))
    }
    func counted(_ count: Int, since seconds: Int64) -> FailedAttempts {
      FailedAttempts(count: count, since: Sample.time(seconds))
    }
    var store = try await prepared.open()
    #expect(try await store.count([]) == [])
    #expect(try await store.count([attempt(at: event, 10)]) == [counted(1, since: 10)])
    // Together, in whatever order, the same one twice: each says what there was by then.
    #expect(
      try await store.count([attempt(at: event, 11), attempt(at: other, 12), attempt(at: event, 13)])
        == [counted(2, since: 10), counted(1, since: 12), counted(3, since: 10)])
    await store.close()

    store = try await prepared.open()
    #expect(
      try await store.standings(of: [event, other], for: Sample.revoker)
        == [.open(counted(3, since: 10)), .open(counted(1, since: 12))])
    #expect(try await store.standings(of: [event], for: Sample.relay) == [.open(FailedAttempts())])
    #expect(try await store.count([attempt(at: event, 20)]) == [counted(4, since: 10)])
    #expect(try await store.settle([event.settled(by: Sample.revoker)], at: now) == [.applied])
    #expect(try await store.standings(of: [event], for: Sample.revoker) == [.settled(event.entry(at: now))])
    #expect(try await store.count([attempt(at: event, 30)]) == [counted(1, since: 30)], "they were forgotten")
    #expect(try await store.standings(of: [other], for: Sample.revoker) == [.open(counted(1, since: 12))])
    // The clock was ahead: or nobody would give up what fails until that time has come.
    #expect(try await store.count([attempt(at: event, 15)]) == [counted(2, since: 15)])
    #expect(try await store.count([attempt(at: event, 16)]) == [counted(3, since: 15)])
    await store.close()
  }

  /// Two groups of the same events at once, of one program and of two: each event is applied once.
  @Test(arguments: Implementation.all)
  func callsThatAreUnderWayAtOnceApplyEachEventOnce(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let stores = [try await prepared.open(), try await prepared.open()]
    for round in 0..<10 {
      let group = (0..<100).map { number in
        Sample.event("\(round)-\(number)", of: Sample.account(number), at: Int64(round))
          .settled(.setRelay(Sample.enabled(Int64(round), number)))
      }
      let calls = (0..<4).map { call in
        Task { [now] in
          try await stores[call % 2].settle(call < 2 ? group : group.reversed(), announced: [], at: now).outcomes
        }
      }
      var outcomes: [SettledOutcome] = []
      for call in calls { outcomes += try await call.value }
      #expect(outcomes.count { $0 == .applied } == 100)
      #expect(outcomes.count { $0.isRepeated } == 300)
    }
    for store in stores { await store.close() }
  }

  @Test(arguments: Implementation.all)
  func aStoreThatWasClosedSaysSo(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.check()
    await store.close()
    let error = await #expect(throws: AccountStoreError.self) { try await store.check() }
    #expect(error?.code == .closed && error?.isTransient == false)
  }

  /// What makes events of before void outlives the state of mail that it came with, whatever becomes of that.
  @Test(
    arguments: Implementation.all,
    [
      [.removeRelay], [.setRelay(Sample.disabled(9))], [.eraseAccount(isFinal: false)], [.eraseAccount(isFinal: true)],
      [.setRelay(Sample.disabled(9)), .eraseAccount(isFinal: false), .setRelay(Sample.enabled(9))],
    ] as [[StoreChange]])
  func aFenceOutlivesTheStateOfMailThatItCameWith(_ implementation: Implementation, changes: [StoreChange]) async throws
  {
    try await PreparedStore.with(implementation) { store throws in
      let severe = Sample.event("severe", at: 3, severity: 1).settled(.setRelay(Sample.enabled(3)))
      let mail = Sample.event("mail", at: 5).settled(.setRelay(Sample.enabled(5)))
      let other = Settlement(
        of: Sample.event("other", at: 9), by: Sample.eraser, outcome: "done", changes: changes)
      for settlement in [severe, mail, other] {
        #expect(try await store.settle([settlement], at: now) == [.applied])
        #expect(
          try await store.settle([settlement], at: now).first?.isRepeated == true, "\(settlement.event.id)")
      }
      func look() async throws {
        let late = [
          Sample.event("late", at: 4), Sample.event("late", at: 3, severity: 1),
          Sample.event("late", at: 4, severity: 1),
          Sample.event("late", at: 6),
        ]
        let void = EventStanding.superseded(.newerEvent)
        #expect(
          try await store.standings(of: late, for: Sample.relay)
            == [void, void, .open(FailedAttempts()), .open(FailedAttempts())])
        #expect(
          try await store.standings(of: late, for: Sample.eraser) == [
            void, .open(FailedAttempts()), .open(FailedAttempts()), void,
          ])
      }
      try await look()
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(20), tokens: [Sample.token()])
      try await look()
      // One of before has no effect on what is there by now.
      let before = try await store.relayStates(of: [Sample.account()])
      let old = Sample.event("old", at: 4).settled(.setRelay(Sample.enabled(4)))
      #expect(try await store.settle([old], at: now) == [.superseded(.newerEvent)])
      #expect(try await store.relayStates(of: [Sample.account()]) == before)
      let next = Sample.event("next", at: 21).settled(.setRelay(Sample.enabled(21)))
      #expect(try await store.settle([next], at: now) == [.applied])
      #expect(
        try await store.standings(of: [Sample.event("late", at: 20)], for: Sample.relay)
          == [.superseded(.newerEvent)])
    }
  }
}
