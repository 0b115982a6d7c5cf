import AccountEvents
import AccountStore
import EventLoop
import TestSupport
import Testing

/// What has made an event void, and what has not.
@Loop @Suite struct JudgementTests {
  private let now = Sample.time(10_000)

  /// How `second` stands once `first` was applied, by what `standings` says and by what `settle` does.
  private func outcome(
    _ implementation: Implementation, of second: EventReference, after first: EventReference
  ) async throws -> SettledOutcome {
    try await PreparedStore.with(implementation) { store throws in
      #expect(try await store.settle([first.settled()], at: now) == [.applied])
      let standing = try await store.standings(of: [second], for: Sample.relay)
      let change = StoreChange.setRelay(Sample.enabled(5))
      let outcome = try await store.settle([second.settled(change)], at: now)[0]
      switch (standing[0], outcome) {
      case (.open(FailedAttempts()), .applied):
        #expect(try await store.relayStates(of: [second.account]) == [.known(Sample.enabled(5))])
      case (.superseded(let cause), .superseded(let same)) where cause == same:
        #expect(try await store.relayStates(of: [second.account]) == [.unknown])
        // The ledger has it: it is not looked at again, whatever happens.
        let noted = second.entry("superseded:\(cause.rawValue)", at: now)
        #expect(try await store.standings(of: [second], for: Sample.relay) == [.settled(noted)])
        #expect(try await store.settle([second.settled(change)], at: now) == [.repeated(noted)])
      default: Issue.record("it stood as \(standing[0]), and became \(outcome)")
      }
      return outcome
    }
  }

  /// Seconds, severity and tie of the first event and of the second, and whether the second counts.
  @Test(
    arguments: Implementation.all,
    [
      (first: (10, 0, 0), second: (11, 0, 0), counts: true),
      (first: (10, 0, 0), second: (9, 0, 0), counts: false),
      // Of the same millisecond: the higher tie; an equal one is the same decision.
      (first: (10, 0, 0), second: (10, 0, 0), counts: false),
      (first: (10, 0, 0), second: (10, 0, 1), counts: true),
      (first: (10, 0, 1), second: (10, 0, 0), counts: false),
      // What takes more away covers what takes less, and not the reverse.
      (first: (10, 3, 0), second: (9, 1, 5), counts: false),
      (first: (10, 1, 0), second: (9, 3, 0), counts: true),
      (first: (10, 3, 0), second: (11, 1, 0), counts: true),
      (first: (10, 3, 1), second: (10, 1, 0), counts: false),
      (first: (10, 3, 0), second: (10, 1, 1), counts: true),
    ] as [(first: (Int64, Int, Int), second: (Int64, Int, Int), counts: Bool)])
  func aWeightierLaterEventMakesAnEventVoid(
    _ implementation: Implementation,
    _ example: (first: (Int64, Int, Int), second: (Int64, Int, Int), counts: Bool)
  ) async throws {
    let (first, second) = (example.first, example.second)
    let outcome = try await outcome(
      implementation, of: Sample.event("second", at: second.0, severity: second.1, tie: second.2),
      after: Sample.event("first", at: first.0, severity: first.1, tie: first.2))
    #expect(outcome == (example.counts ? .applied : .superseded(.newerEvent)))
  }

  /// What covers less than its own severity may be applied behind a fence that it must not take back.
  @Test(arguments: Implementation.all, [false, true])
  func anOlderEventThatCoversLessTakesNoFenceBack(_ implementation: Implementation, isOne: Bool) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let partial = EventReference(
        id: Sample.valid(EventID("partial")), account: Sample.account(), hash: Sample.hash(of: Sample.account()),
        occurredAt: Sample.time(10),
        origin: EventOrigin(topic: "apple.account-events.v1", partition: 0, offset: 8),
        weight: EventWeight(severity: 2, tie: 0, covers: 0), yieldsTo: [])
      let settlements = [Sample.event("later", at: 20).settled(), partial.settled()]
      for group in isOne ? [settlements] : settlements.map({ [$0] }) {
        #expect(
          try await store.settle(group, at: now).allSatisfy { $0 == .applied }, "both are applied")
      }
      #expect(
        try await store.standings(of: [Sample.event("between", at: 15)], for: Sample.relay)
          == [.superseded(.newerEvent)])
    }
  }

  @Test(arguments: Implementation.all)
  func accountsAndConsumersAreJudgedApart(_ implementation: Implementation) async throws {
    let later = Sample.event("first", of: Sample.account(2), at: 100, severity: 9)
    let other = try await outcome(implementation, of: Sample.event("second", at: 1), after: later)
    #expect(other == .applied)
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.settle([later.settled(by: Sample.revoker)], at: now)
      let event = Sample.event("second", of: Sample.account(2), at: 1)
      #expect(try await store.standings(of: [event], for: Sample.eraser) == [.open(FailedAttempts())])
      #expect(try await store.standings(of: [event], for: Sample.revoker) == [.superseded(.newerEvent)])
    }
  }

  @Test(arguments: Implementation.all)
  func aSignInAfterItMakesAnEventVoidThatYieldsToIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(10), tokens: [])
      // Older than what is known: it changes nothing.
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(5), tokens: [])
      let events = [
        Sample.event("9", at: 9, yieldsTo: [.signIn]), Sample.event("10", at: 10, yieldsTo: [.signIn]),
        Sample.event("11", at: 11, yieldsTo: [.signIn]), Sample.event("9e", at: 9, yieldsTo: [.erasure]),
        Sample.event("9o", of: Sample.account(2), at: 9, yieldsTo: [.signIn]),
      ]
      #expect(
        try await store.standings(of: events, for: Sample.revoker) == [
          .superseded(.newerSignIn), .open(FailedAttempts()), .open(FailedAttempts()), .open(FailedAttempts()),
          .open(FailedAttempts()),
        ])
    }
  }

  @Test(arguments: Implementation.all, [false, true])
  func anErasureMakesVoidWhatYieldsToIt(_ implementation: Implementation, isFinal: Bool) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let deletion = Sample.event("deletion", at: 10)
      _ = try await store.settle([deletion.settled(by: Sample.eraser, .eraseAccount(isFinal: isFinal))], at: now)
      let events = [9, 10, 11, 30].map { Sample.event("\($0)", at: $0, yieldsTo: [.erasure]) }
      let after: EventStanding = isFinal ? .superseded(.erased) : .open(FailedAttempts())
      #expect(
        try await store.standings(of: events, for: Sample.relay) == [
          .superseded(.erased), .superseded(.erased), after, after,
        ])
      let heedless = Sample.event("heedless", at: 9)
      #expect(try await store.standings(of: [heedless], for: Sample.relay) == [.open(FailedAttempts())])
      // With the next sign-in what happens counts again, and what happened before it does not.
      _ = try await store.recordSignIn(Sample.account(), at: Sample.time(20), tokens: [])
      #expect(
        try await store.standings(of: events, for: Sample.relay) == [
          .superseded(.erased), .superseded(.erased), .open(FailedAttempts()), .open(FailedAttempts()),
        ])
    }
  }

  /// As many as a database reads at once, one more, and more than twice as many.
  @Test(arguments: Implementation.all, [1, 15, 16, 17, 45])
  func eachOfManyIsJudgedByWhatBearsOnIt(_ implementation: Implementation, count: Int) async throws {
    try await PreparedStore.with(implementation) { store throws in
      var (events, standings): ([EventReference], [EventStanding]) = ([], [])
      for number in 0..<count {
        let account = Sample.account(number)
        // Ids in another order than the events are asked about.
        let event = Sample.event("\(number * 7 % 45)", of: account, at: 10, yieldsTo: [.erasure, .signIn])
        let newer = Sample.event("newer-\(number)", of: account, at: 20)
        events.append(event)
        switch number % 7 {
        case 0: standings.append(.open(FailedAttempts()))
        case 1:
          _ = try await store.settle([event.settled(detail: "\(number)")], at: now)
          standings.append(.settled(event.entry(detail: "\(number)", at: now)))
        case 2:
          // Its fence stands with the state of mail, and the next one's does not.
          _ = try await store.settle([newer.settled(.setRelay(Sample.enabled(20)))], at: now)
          standings.append(.superseded(.newerEvent))
        case 3:
          _ = try await store.settle([newer.settled()], at: now)
          standings.append(.superseded(.newerEvent))
        case 4:
          let failure = FailedAttempt(at: event, by: Sample.relay, cause: "timeout", time: Sample.time(Int64(number)))
          standings.append(.open(try await store.count([failure])[0]))
        case 5:
          _ = try await store.recordSignIn(account, at: Sample.time(30), tokens: [])
          standings.append(.superseded(.newerSignIn))
        default:
          _ = try await store.settle([newer.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
          standings.append(.superseded(.erased))
        }
      }
      #expect(try await store.standings(of: events, for: Sample.relay) == standings)
      #expect(
        try await store.standings(of: events.reversed(), for: Sample.relay) == standings.reversed(),
        "in whichever order")
    }
  }

  /// The same events in every order, alone and in one transaction: one answer.
  @Test(
    arguments: Implementation.all,
    [
      (times: [10, 20, 30, 40, 50], end: .unknown), (times: [30, 30, 30, 30, 30], end: .unknown),
      (times: [50, 40, 30, 20, 10], end: .known(Sample.enabled(50))),
      (times: [10, 30, 20, 30, 10], end: .known(Sample.disabled(30))),
      (times: [30, 30, 30, 30, 20], end: .known(Self.withoutAddress(30))),
    ] as [(times: [Int64], end: RelayKnowledge)])
  func everyOrderOfArrivalEndsAlike(
    _ implementation: Implementation, _ example: (times: [Int64], end: RelayKnowledge)
  ) async throws {
    let times = example.times
    // As the consumer of relay states weighs them: the last counts, and of the same moment what takes more away.
    let kinds: [(tie: Int, change: (Int64) -> StoreChange)] = [
      (0, { .setRelay(Sample.enabled($0)) }), (1, { .setRelay(Sample.disabled($0)) }),
      (2, { .setRelay(Self.withoutAddress($0)) }),
      (0, { .setRelay(Sample.enabled($0)) }), (3, { _ in .removeRelay }),
    ]
    try await PreparedStore.with(implementation) { store throws in
      var accounts: [Account] = []
      for (number, order) in permutations(of: Array(kinds.indices)).enumerated() {
        let account = Sample.account(number)
        accounts.append(account)
        let settlements = order.map { index in
          Sample.event("\(number)-\(index)", of: account, at: times[index], tie: kinds[index].tie)
            .settled(kinds[index].change(times[index]))
        }
        if number.isMultiple(of: 2) {
          _ = try await store.settle(settlements, at: now)
        } else {
          for settlement in settlements { _ = try await store.settle([settlement], at: now) }
        }
      }
      #expect(accounts.count == 120)
      let states = try await store.relayStates(of: accounts)
      #expect(Set(states) == [example.end])
    }
  }

  private nonisolated static func withoutAddress(_ seconds: Int64) -> RelayState {
    RelayState(status: .disabled, address: nil, isPrivate: false, since: Sample.time(seconds))
  }

  private func permutations(of items: [Int]) -> [[Int]] {
    guard !items.isEmpty else { return [[]] }
    return items.flatMap { first in permutations(of: items.filter { $0 != first }).map { [first] + $0 } }
  }
}
