import AccountEvents
import AccountStore
import EventLoop

/// People of whom a store knows all that it can know of anybody.
@Loop
enum Population {
  /// With tokens and mail.
  nonisolated static let signedIn = Sample.account(1)
  /// For good.
  nonisolated static let erased = Sample.account(2)
  /// Came back after an erasure.
  nonisolated static let returned = Sample.account(3)
  /// Known for one thing each: an authorization of ours that we ended, one that was ended, a fence, steps of an erasure.
  nonisolated static let accounts = (1...8).map { Sample.account($0) }

  private static let now = Sample.time(10_000)
  private static let day = Sample.time(0)

  /// Writes all of it.
  static func settle(in store: any AccountStore) async throws {
    _ = try await store.recordSignIn(
      signedIn, at: Sample.time(1), tokens: [Sample.token(1), Sample.token(11, .access)])
    _ = try await store.recordSignIn(erased, at: Sample.time(1), tokens: [Sample.token(2)])
    _ = try await store.recordSignIn(returned, at: Sample.time(1), tokens: [Sample.token(3)])
    let settlements = [
      settled("mail-1", 1, .setRelay(Sample.enabled(2, 1))),
      settled("erased-2", 2, at: 100, by: Sample.eraser, .eraseAccount(isFinal: true)),
      settled("erased-3", 3, at: 100, by: Sample.eraser, .eraseAccount(isFinal: false)),
      settled("ended-4", 4, by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(50))),
      settled("own-5", 5, by: Sample.revoker, .noteOwnRevocation(of: Sample.client, isProven: true)),
      settled("fence-6", 6, at: 100, by: Sample.relay), settled("fence-6", 6, at: 100, by: Sample.eraser),
      // No address is kept of some.
      settled(
        "mail-8", 8,
        .setRelay(RelayState(status: .disabled, address: nil, isPrivate: false, since: Sample.time(2)))),
    ]
    _ = try await store.settle(settlements, at: now)
    _ = try await store.recordSignIn(returned, at: Sample.time(200), tokens: [Sample.token(33)])
    let open = Sample.event("open-7", of: Sample.account(7), at: 2)
    for (target, state, detail) in [
      ("shop", .begun, ""), ("mails", .failed, "not-now"), ("law", .retained, "§ 147 AO, until 2026-12-31"),
    ] as [(String, ErasureStep.State, String)] {
      let step = ErasureStep(
        target: target, state: state, before: 1, affected: nil, after: nil, detail: detail, time: Sample.time(5))
      try await store.record([(step, open)])
    }
    _ = try await store.count([FailedAttempt(at: open, by: Sample.eraser, cause: "any", time: now)])
  }

  private static func settled(
    _ id: String, _ number: Int, at seconds: Int64 = 2, by consumer: ConsumerName = Sample.relay,
    _ changes: StoreChange...
  ) -> Settlement {
    Settlement(
      of: Sample.event(id, of: Sample.account(number), at: seconds), by: consumer, outcome: "done", changes: changes)
  }

  /// What a store says of all of them. Hashes are not compared.
  struct Knowledge: Equatable {
    let mail: [RelayKnowledge]
    var tokens: [[StoredToken]] = []
    var revocations: [[OwnRevocation]] = []
    var standings: [[EventStanding]] = []
    let held: [Bool]
    /// Each step that is open or due, and whether it is said of the right one.
    var steps: [String] = []
    /// Which of the tokens of a sign-in are over: nothing is written of those.
    let over: [NewToken]

    /// Asks the store, with references that were made before any rotation.
    @Loop
    init(of store: any AccountStore) async throws {
      mail = try await store.relayStates(of: accounts)
      for account in accounts {
        tokens.append(try await store.tokens(of: account))
        revocations.append(try await store.ownRevocations(of: account))
      }
      for consumer in [Sample.relay, Sample.eraser, Sample.revoker] {
        let late = accounts.map {
          Sample.event("late", of: $0, at: 100, yieldsTo: [.erasure, .signIn])
        }
        let known = [("mail-1", 1), ("erased-2", 2), ("own-5", 5), ("open-7", 7)].map { id, number in
          Sample.event(id, of: Sample.account(number), at: 2)
        }
        standings.append(try await store.standings(of: late + known, for: consumer))
      }
      held = try await store.holdsTokens(
        accounts.map { TokenQuestion(of: $0, issuedUpTo: Sample.time(1), clients: nil) })
      for open in try await store.openErasures(by: Sample.eraser, after: nil, limit: 9) {
        steps.append("\(open.place.event) \(open.place.target) \(open.account == store.hash(of: Sample.account(7)))")
      }
      for account in [nil, Sample.account(7), Sample.account(1)] {
        for due in try await store.dueErasures(until: day, of: account, after: nil, limit: 9) {
          steps.append("\(due.place.event) \(due.place.target) \(due.account == store.hash(of: Sample.account(7)))")
        }
      }
      over = try await store.recordSignIn(erased, at: Sample.time(100), tokens: [Sample.token(9)])
    }

    /// Whether there is something of each kind: what is compared is not nothing.
    var hasAll: Bool {
      tokens.map(\.count) == [2, 0, 1, 0, 0, 0, 0, 0] && revocations.map(\.count) == [0, 0, 0, 0, 1, 0, 0, 0]
        && held == [true, false, false, false, false, false, false, false]
        && steps == ["open-7 mails true", "open-7 shop true", "open-7 law true", "open-7 law true"]
        && over == [Sample.token(9)] && standings[0][5] == .superseded(.newerEvent)
        && standings[0][1] == .superseded(.erased) && standings[2][5] == .open(FailedAttempts())
        && mail[1] == .erased(since: Sample.time(100)) && mail[7] != .unknown
    }
  }
}
