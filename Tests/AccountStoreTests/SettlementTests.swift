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
      let settlement = event.settled(.setRelay(Sample.enabled(1)), announcing: [Sample.announcement("a")])
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.open(attempts: 0)])
      #expect(try await store.settle([settlement, settlement], at: now) == [.applied(announcements: 1), .repeated])
      #expect(try await store.settle([settlement], at: now) == [.repeated])
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.settled])
      #expect(try await store.standings(of: [event], for: Sample.revoker) == [.open(attempts: 0)])
      #expect(try await store.settle([event.settled(by: Sample.revoker)], at: now) == [.applied(announcements: nil)])
      #expect(try await store.relayStates(of: [Sample.account()]) == [.known(Sample.enabled(1))])
      #expect(try await store.announcements(of: Sample.relay, partition: 0, limit: 10).count == 1)
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
      #expect(try await store.standings(of: [event], for: Sample.relay) == [.open(attempts: 0)])
      // The fence does not stand either.
      let later = Sample.event("c", at: 4)
      #expect(
        try await store.settle([later.settled(), void, void], at: now)
          == [.applied(announcements: nil), .superseded(.newerEvent), .repeated])
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
            .setRelay(Sample.enabled(event.occurredAt.milliseconds / 1000 - 1_800_000_000, number)),
            announcing: [Sample.announcement("\(number)")]))
      }
      let outcomes = try await store.settle(settlements, at: now)
      let accounts = (0..<100).map(Sample.account)
      let states = try await store.relayStates(of: accounts)
      let announcements = try await store.announcements(of: Sample.relay, partition: 0, limit: 1000)
      #expect(announcements.count == outcomes.count { if case .applied = $0 { true } else { false } })
      for order in [settlements, settlements.reversed()] {
        let outcomes = try await store.settle(order, at: now)
        #expect(outcomes.allSatisfy { $0 == .repeated })
      }
      #expect(try await store.relayStates(of: accounts) == states)
      #expect(try await store.announcements(of: Sample.relay, partition: 0, limit: 1000) == announcements)
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
  func whatAConsumersOwnTopicLeadsToWaitsInAQueueOfItsOwn(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let known = Sample.event("1", at: 1, partition: 3)
      let own = EventOrigin(topic: "apple.account-events.email-relay.retry.v1", partition: 3, offset: 0)
      let retried = EventReference(
        id: Sample.valid(EventID("2")), account: Sample.account(2), occurredAt: known.occurredAt, origin: own,
        weight: known.weight, yieldsTo: [])
      _ = try await store.settle(
        [
          known.settled(announcing: [Sample.announcement("a")]),
          retried.settled(announcing: [Sample.announcement("b")]),
        ],
        at: now)
      let (first, second) = (
        try await store.announcements(of: Sample.relay, partition: known.origin.queue, limit: 10),
        try await store.announcements(of: Sample.relay, partition: own.queue, limit: 10)
      )
      #expect(first.map(\.announcements) == [[Sample.announcement("a")]])
      #expect(second.map(\.announcements) == [[Sample.announcement("b")]])
    }
  }

  @Test(arguments: Implementation.all)
  func announcementsAreNumberedAndForgotten(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let said = ["a", "b", "c"].map { Sample.announcement($0) } + [Sample.announcement("d", tombstone: true)]
      let outcomes = try await store.settle(
        [
          Sample.event("1", at: 1).settled(announcing: Array(said[..<2])),
          Sample.event("2", of: Sample.account(2), at: 1, partition: 5).settled(announcing: [said[2]]),
          Sample.event("3", of: Sample.account(3), at: 1).settled(announcing: [said[3]]),
        ], at: now)
      #expect(
        outcomes == [
          .applied(announcements: 1), .applied(announcements: 2), .applied(announcements: 3),
        ])
      let waiting = try await store.announcements(of: Sample.relay, partition: 0, limit: 10)
      #expect(waiting.map(\.number) == [1, 3] && waiting.map(\.announcements) == [Array(said[..<2]), [said[3]]])
      #expect(try await store.announcements(of: Sample.relay, partition: 0, limit: 1).map(\.number) == [1])
      #expect(try await store.announcements(of: Sample.relay, partition: 5, limit: 10).map(\.number) == [2])
      #expect(try await store.announcements(of: Sample.revoker, partition: 0, limit: 10) == [])
      #expect(try await store.forget(announcements: [3, 99]) == [99])
      #expect(try await store.forget(announcements: [3]) == [3], "somebody has forgotten it")
      #expect(try await store.announcements(of: Sample.relay, partition: 0, limit: 10).map(\.number) == [1])
      // A number is never given twice.
      let later = Sample.event("4", of: Sample.account(4), at: 1).settled(announcing: [said[0]])
      #expect(
        try await store.settle([later], forgetting: [3, 1], at: now)
          == Settled(outcomes: [.applied(announcements: 4)], missing: [3]))
      #expect(try await store.announcements(of: Sample.relay, partition: 0, limit: 10).map(\.number) == [4])
      #expect(try await store.settle([], forgetting: [4], at: now) == Settled())
      #expect(try await store.announcements(of: Sample.relay, partition: 0, limit: 10) == [])
    }
  }

  @Test(arguments: Implementation.all)
  func attemptsAreCountedUntilTheEventIsSettled(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let event = Sample.event("a", at: 1)
    let attempt = FailedAttempt(at: event, by: Sample.revoker, cause: "apple-unavailable", time: now)
    var store = try await prepared.open()
    #expect(try await store.firstAttempt(at: event.id, by: Sample.revoker) == nil)
    #expect(try await store.countAttempt(attempt) == 1)
    let second = FailedAttempt(at: event, by: Sample.revoker, cause: "apple-unavailable", time: now + .seconds(1))
    #expect(try await store.countAttempt(second) == 2)
    #expect(try await store.firstAttempt(at: event.id, by: Sample.revoker) == now)
    #expect(try await store.firstAttempt(at: event.id, by: Sample.relay) == nil)
    await store.close()

    store = try await prepared.open()
    #expect(try await store.standings(of: [event], for: Sample.revoker) == [.open(attempts: 2)])
    #expect(try await store.standings(of: [event], for: Sample.relay) == [.open(attempts: 0)])
    #expect(try await store.countAttempt(attempt) == 3)
    #expect(try await store.settle([event.settled(by: Sample.revoker)], at: now) == [.applied(announcements: nil)])
    #expect(try await store.standings(of: [event], for: Sample.revoker) == [.settled])
    #expect(try await store.countAttempt(attempt) == 1, "they were forgotten")
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func aStoreThatWasClosedSaysSo(_ implementation: Implementation) async throws {
    let store = try await implementation.prepare().open()
    try await store.check()
    await store.close()
    let error = await #expect(throws: AccountStoreError.self) { try await store.check() }
    #expect(error?.code == .closed && error?.isTransient == false)
  }
}
