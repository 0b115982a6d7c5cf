import AccountEvents
import Cryptography
import EventLoop
import Testing

@testable import AccountStore

/// A sign-in and a deletion of one person, in every order of their steps.
@Loop @Suite(.timeLimit(.minutes(30))) struct DeletionOrderTests {
  private let account = Sample.account()

  private nonisolated static func id(_ number: Int = 1) -> EventID { Sample.valid(EventID("deletion-\(number)")) }

  private func request(_ number: Int = 1, at time: Timestamp, in store: any AccountStore) async throws -> Deletion {
    let found = try await store.requestDeletion(of: account, in: Sample.client, as: Self.id(number), at: time)
    return try #require(found)
  }

  private func reference(
    _ id: String, at time: Timestamp, _ store: any AccountStore, severity: Int, tie: Int = 0
  ) -> EventReference {
    EventReference(
      id: Sample.valid(EventID(id)), account: account, hash: store.hash(of: account), occurredAt: time,
      origin: EventOrigin(topic: "apple.account-events.v1", partition: 0, offset: 7),
      weight: EventWeight(severity: severity, tie: tie), yieldsTo: [.signIn])
  }

  private func exchange(_ name: String, at time: Timestamp, by store: any AccountStore) -> CodeExchange {
    let digest = SHA256.digest(of: Array(name.utf8))
    return CodeExchange(
      request: digest, content: digest, code: digest, account: store.id(of: account), client: Sample.client,
      begunAt: time)
  }

  /// Apple's second has turned over in between.
  @Test(arguments: Implementation.all)
  func whatWasBegunBeforeTheDeletionIsEndedByItThoughAppleAnswersLater(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(1)])
      let early = exchange("early", at: Sample.time(19) + .milliseconds(900), by: store)
      #expect(try await store.begin(early) == .begun)
      let deletion = try await request(at: Sample.time(19) + .milliseconds(950), in: store)
      _ = try await store.recordSignIn(account, at: Sample.time(20), tokens: [Sample.token(2)], of: early.request)
      let event = reference(deletion.id.text, at: deletion.requestedAt, store, severity: 2)
      #expect(try await store.standings(of: [event], for: Sample.revoker) == [.open(FailedAttempts())])
    }
  }

  /// The store knew of it before the deletion.
  @Test(arguments: Implementation.all)
  func whatWasBegunBeforeByAClockThatIsAheadIsEndedToo(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(1)])
      let early = exchange("early", at: Sample.time(319), by: store)
      #expect(try await store.begin(early) == .begun)
      let id = store.id(of: account)
      func underWay(_ begin: Int64, _ end: Int64) async throws -> Timestamp? {
        try await store.signInUnderWay(of: id, after: Sample.time(begin), until: Sample.time(end))
      }
      #expect(try await underWay(19, 318) == nil)
      #expect(try await underWay(318, 319) == Sample.time(319))
      let deletion = try await request(at: Sample.time(20), in: store)
      // Or what Apple tells of until that clock's time would be void.
      #expect(deletion.requestedAt == Sample.time(20))
      #expect(try await underWay(19, 318) == Sample.time(20), "it counts as begun until then")
      _ = try await store.recordSignIn(account, at: Sample.time(19), tokens: [Sample.token(2)], of: early.request)
      let event = reference(deletion.id.text, at: deletion.requestedAt, store, severity: 2)
      #expect(try await store.standings(of: [event], for: Sample.revoker) == [.open(FailedAttempts())])
    }
  }

  /// Whoever published was killed, and the clock is set back by an hour; or another host's is behind by one.
  @Test(arguments: Implementation.all)
  func aLeaseOfTheFutureHoldsNobodyUp(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      _ = try await request(at: Sample.time(20), in: store)
      _ = try await store.takeOutbox(by: "a", at: Sample.time(3600), until: Sample.time(3660), after: nil, limit: 9)
      var waited = 0
      while try await store.takeOutbox(
        by: "b", at: Sample.time(Int64(waited)), until: Sample.time(Int64(waited) + 60), after: nil, limit: 9) == nil
      { waited += 60 }
      #expect(waited <= 120)
    }
  }

  @Test(arguments: Implementation.all)
  func aRepeatedSignInHasTheTimeOfTheFirstAnswer(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let deletion = try await request(at: Sample.time(20) + .milliseconds(500), in: store)
      let late = exchange("late", at: Sample.time(20) + .milliseconds(600), by: store)
      #expect(try await store.begin(late) == .begun)
      let recorded = try await store.recordSignIn(
        account, at: Sample.time(20), tokens: [Sample.token(2)], of: late.request)
      #expect(recorded.over.isEmpty && deletion.requestedAt > Sample.time(20))
      // Applications end the sessions that are not later than a deletion: Apple's whole second would be one of them.
      #expect(recorded.at > deletion.requestedAt)
      #expect(try await store.begin(late) == .finished(.known, at: recorded.at))
      #expect(
        try await store.recordSignIn(account, at: Sample.time(20), tokens: [Sample.token(3)], of: late.request).at
          == recorded.at)
    }
  }

  // MARK: Every order

  /// Apple, of one person and one app.
  private final class ModelApple {
    private(set) var living: Set<String> = []
    func grant(_ name: String) { living.insert(name) }
    /// Says whether something was ended.
    func revoke(_ name: String) -> Bool {
      guard living.contains(name) else { return false }
      living = []
      return true
    }
  }

  private enum Step: CaseIterable { case begin, grant, record, ask, read, revoke, validate, settle }

  private static func orders() -> [[Step]] {
    func merge(_ one: [Step], _ other: [Step]) -> [[Step]] {
      guard let first = one.first else { return [other] }
      guard let second = other.first else { return [one] }
      return merge(Array(one.dropFirst()), other).map { [first] + $0 }
        + merge(one, Array(other.dropFirst())).map { [second] + $0 }
    }
    return merge([.begin, .grant, .record], [.ask, .read, .revoke, .validate, .settle])
  }

  /// `millisecondsPerStep`; `skew` is Apple's clock minus ours, in seconds.
  @Test(arguments: [(10, 0), (300, 0), (1500, 0), (300, -300), (300, 5)] as [(Int64, Int64)])
  func neitherALivingTokenIsLeftNorAFreshOneEnded(_ pace: Int64, _ skew: Int64) async throws {
    var findings: [String: [String]] = [:]
    for order in Self.orders() {
      let name = order.map { "\($0)" }.joined(separator: " ")
      for finding in try await run(order, pace, skew) { findings[finding, default: []].append(name) }
    }
    for (finding, orders) in findings.sorted(by: { $0.key < $1.key }) {
      Issue.record("\(finding): \(orders.count) orders, such as \(orders[0]); \(pace) ms, \(skew) s")
    }
  }

  /// Whether a sign-in is under way that was begun after the deletion was asked for.
  private func isUnderWay(_ asked: Deletion, _ now: Timestamp, in store: any AccountStore) async throws -> Bool {
    let (account, end) = (store.id(of: account), now + .seconds(600))
    return try await store.signInUnderWay(of: account, after: asked.requestedAt, until: end) != nil
  }

  private func run(_ order: [Step], _ pace: Int64, _ skew: Int64) async throws -> [String] {
    let rig = try SQLiteRig(hashKey: Sample.hashKey)
    let store = try await rig.open()
    let apple = ModelApple()
    var findings: [String] = []
    var now = Sample.time(1000) + .milliseconds(870)
    func applesTime() -> Timestamp { now + .seconds(skew) }
    func applesSecond() -> Timestamp { Sample.valid(Timestamp(seconds: applesTime().milliseconds / 1000)) }
    func value(_ token: StoredToken) -> String { token.token.value.text }
    let (old, fresh) = (Sample.token(1), Sample.token(2))
    apple.grant(old.value.text)
    _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [old])
    var signIn: CodeExchange?
    var iat = Timestamp.now
    var deletion: Deletion?
    var askedFirst = false
    var tokens: [StoredToken] = []
    var echo: Timestamp?
    var isStopped = false
    for step in order {
      now = now + .milliseconds(pace)
      switch step {
      case .begin:
        let made = exchange("s", at: now, by: store)
        #expect(try await store.begin(made) == .begun)
        signIn = made
        askedFirst = deletion != nil
      case .grant:
        apple.grant(fresh.value.text)
        iat = applesSecond()
      case .record:
        let made = try #require(signIn)
        let recorded = try await store.recordSignIn(account, at: iat, tokens: [fresh], of: made.request)
        if !recorded.over.isEmpty {
          let question = TokenQuestion(of: account, issuedUpTo: now + .seconds(1_000_000), clients: [Sample.client])
          if try await store.holdsTokens([question]) == [false], apple.revoke(fresh.value.text) { echo = applesTime() }
        }
      case .ask: deletion = try await request(at: now, in: store)
      case .read:
        let asked = try #require(deletion)
        tokens = try await store.tokens(of: account).filter { $0.issuedAt <= asked.requestedAt }
      case .revoke:
        let asked = try #require(deletion)
        let event = reference(asked.id.text, at: asked.requestedAt, store, severity: 2)
        for token in tokens {
          guard case .open = try await store.standings(of: [event], for: Sample.revoker)[0] else {
            isStopped = true
            break
          }
          if try await isUnderWay(asked, now, in: store) {
            isStopped = true
            break
          }
          if apple.revoke(value(token)) { echo = applesTime() }
        }
      case .validate:
        if !isStopped, tokens.contains(where: { apple.living.contains(value($0)) }) { isStopped = true }
      case .settle:
        let asked = try #require(deletion)
        let event = reference(asked.id.text, at: asked.requestedAt, store, severity: 2)
        if !isStopped, case .open = try await store.standings(of: [event], for: Sample.revoker)[0] {
          let left = try await store.tokens(of: account).filter { $0.issuedAt <= asked.requestedAt }
          if left.contains(where: { token in !tokens.contains { $0.token == token.token } }) { isStopped = true }
        }
        if isStopped {
          // It is tried again from the start, at once.
          guard case .open = try await store.standings(of: [event], for: Sample.revoker)[0] else { continue }
          if try await isUnderWay(asked, now, in: store) { continue }
          tokens = try await store.tokens(of: account).filter { $0.issuedAt <= asked.requestedAt }
          for token in tokens where apple.revoke(value(token)) { echo = applesTime() }
        }
        let noted = tokens.isEmpty ? [] : [StoreChange.noteOwnRevocation(of: Sample.client, isProven: true)]
        let end = Settlement(
          of: event, by: Sample.revoker, outcome: "done",
          changes: [.endTokens(issuedUpTo: event.occurredAt, of: nil)] + noted)
        _ = try await store.settle([end], at: now)
      }
    }
    // The revoker comes again.
    if let asked = deletion {
      let event = reference(asked.id.text, at: asked.requestedAt, store, severity: 2)
      if case .open = try await store.standings(of: [event], for: Sample.revoker)[0] {
        tokens = try await store.tokens(of: account).filter { $0.issuedAt <= asked.requestedAt }
        for token in tokens where apple.revoke(value(token)) { echo = now + .seconds(skew) }
        let end = Settlement(
          of: event, by: Sample.revoker, outcome: "done",
          changes: [
            .endTokens(issuedUpTo: event.occurredAt, of: nil), .noteOwnRevocation(of: Sample.client, isProven: true),
          ])
        _ = try await store.settle([end], at: now)
      }
    }
    // Apple's consent-revoked comes at last, and stands behind the deletion.
    now = now + .seconds(20)
    var wasErased = false
    if let echo {
      let event = reference("echo", at: echo, store, severity: 1)
      if try await store.ownRevocations(of: account).isEmpty {
        let end = Settlement(
          of: event, by: Sample.revoker, outcome: "done", changes: [.endTokens(issuedUpTo: echo, of: nil)])
        _ = try await store.settle([end], at: now)
      }
      if case .open = try await store.standings(of: [event], for: Sample.eraser)[0] { wasErased = true }
    }
    let held = Set(try await store.tokens(of: account).map(value))
    let leaked = apple.living.subtracting(held)
    let dead = held.subtracting(apple.living)
    let signedIn = askedFirst ? "sign-in begun after" : "sign-in begun before"
    if leaked.contains(fresh.value.text) { findings.append("\(signedIn): its token lives, and nobody has it") }
    if leaked.contains(old.value.text) { findings.append("\(signedIn): the old token lives, and nobody has it") }
    if dead.contains(fresh.value.text) { findings.append("\(signedIn): its token is dead, and held for good") }
    if askedFirst, !held.contains(fresh.value.text) {
      findings.append("sign-in begun after: the deletion has ended its token, and its data: \(wasErased)")
    }
    if !askedFirst, held.contains(fresh.value.text) {
      findings.append("sign-in begun before: it makes the deletion void, nothing is erased")
    }
    await store.close()
    return findings
  }
}
