import AccountEvents
import AccountStore
import EventLoop
import TestSupport
import Testing

/// Whatever happens, in whatever order: both databases come to the same, and so does one whose hashing key is replaced
/// meanwhile, again and again.
@Loop @Suite(PostgreSQLServer.isThere) struct StoreAgreementTests {
  struct Pair: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let one: Implementation
    let other: Implementation
    let isRotated: Bool
  }

  private nonisolated static var pairs: [Pair] {
    guard let one = Implementation.all.first, let other = Implementation.all.last else { return [] }
    return [
      Pair(testDescription: "SQLite, PostgreSQL", one: one, other: other, isRotated: false),
      Pair(testDescription: "SQLite, SQLite with other keys", one: one, other: one, isRotated: true),
      Pair(testDescription: "SQLite, PostgreSQL with other keys", one: one, other: other, isRotated: true),
    ]
  }

  private nonisolated static let accounts = (1...3).map { Sample.account($0) }
  private nonisolated static let consumers = [Sample.relay, Sample.eraser, Sample.revoker]

  @Test(.timeLimit(.minutes(30)), arguments: pairs)
  func bothComeToTheSame(_ pair: Pair) async throws {
    try await PreparedStore.with(pair.one) { one, oneAdministration throws in
      let prepared = try await pair.other.prepare()
      let (other, otherAdministration) = (try await prepared.open(), prepared.administration)
      var rotations = Rotations()
      var history = History()
      for round in SeededRandom.rounds(pair.isRotated ? 120 : 250) {
        let comment: Comment = "SEED=\(history.random.seed), step \(round)"
        let now = Sample.time(1000 + Int64(round))
        if pair.isRotated { try await rotations.advance(prepared, &history.random) }
        switch Int.random(in: 0..<10, using: &history.random) {
        case 0..<2:
          let signIn = history.signIn()
          let over = try await one.recordSignIn(signIn.account, at: signIn.time, tokens: signIn.tokens)
          #expect(
            try await other.recordSignIn(signIn.account, at: signIn.time, tokens: signIn.tokens) == over, comment)
        case 2..<4 where !rotations.isUnderWay:
          let said = history.outcomes()
          for isRehearsal in [true, false] {
            let changed = try await changes(of: said, in: one, isRehearsal)
            #expect(try await changes(of: said, in: other, isRehearsal) == changed, comment)
          }
          for store in [one, other] {
            let again = try await changes(of: said, in: store, true)
            #expect(again == [[], [], [], []], "\(comment): \(said)")
          }
        case 4:
          let (claims, marks, attempts) = (history.claims(), history.marks(), history.attempts(at: now))
          #expect(
            try await one.claim(claims, for: Sample.relay) == other.claim(claims, for: Sample.relay), comment)
          #expect(
            try await one.settle([], announced: marks, at: now) == other.settle([], announced: marks, at: now),
            comment)
          #expect(try await one.count(attempts) == other.count(attempts), comment)
          let questions = history.questions()
          #expect(try await one.holdsTokens(questions) == other.holdsTokens(questions), comment)
        case 5:
          func prune(_ administration: any AccountStoreAdministration) async throws -> StorePruning {
            try await administration.prune(
              before: Sample.time(1000 + Int64(round) - 20), eraser: Sample.eraser, isRehearsal: false
            ) { _ in }
          }
          #expect(try await prune(oneAdministration) == prune(otherAdministration), comment)
        default:
          let group = history.settlements()
          let events = group.map(\.event)
          #expect(
            try await one.standings(of: events, for: Sample.relay)
              == other.standings(of: events, for: Sample.relay), comment)
          let marks = history.marks()
          #expect(
            try await one.settle(group, announced: marks, at: now) == other.settle(group, announced: marks, at: now),
            comment)
        }
        try #require(try await state(of: one) == state(of: other), comment)
      }
      if rotations.isUnderWay { try await prepared.rotate(7).resume() }
      #expect(try await oneAdministration.verify { _ in } == otherAdministration.verify { _ in })
      #expect(pair.isRotated == (rotations.count > 1))
      await other.close()
    }
  }

  /// Another key, and another one, by processes of which most are killed on their way.
  @Loop
  private struct Rotations {
    private(set) var count = 0
    private(set) var isUnderWay = false
    private var rotation: SteppedRotation?

    mutating func advance(_ prepared: PreparedStore, _ random: inout SeededRandom) async throws {
      if Int.random(in: 0..<8, using: &random) == 0 { rotation = nil }
      if let rotation {
        if try await rotation.step() { return }
        try await rotation.complete()
        (self.rotation, isUnderWay) = (nil, false)
        count += 1
      } else if isUnderWay || Int.random(in: 0..<4, using: &random) == 0 {
        let rotation = try await prepared.rotate(Int64.random(in: 1...3, using: &random))
        #expect(try await rotation.begin(isUnderWay ? nil : try newHashKey()))
        (self.rotation, isUnderWay) = (rotation, true)
      }
    }
  }

  private struct State: Equatable {
    let mail: [RelayKnowledge]
    var tokens: [Set<StoredToken>] = []
    var revocations: [[OwnRevocation]] = []
  }

  private func state(of store: any AccountStore) async throws -> State {
    var state = State(mail: try await store.relayStates(of: Self.accounts))
    for account in Self.accounts {
      state.tokens.append(Set(try await store.tokens(of: account)))
      state.revocations.append(try await store.ownRevocations(of: account))
    }
    return state
  }

  /// Whose erasures, fences, mail and tokens are changed, by the accounts' places.
  private func changes(
    of said: [History.Said], in store: any AccountStore, _ isRehearsal: Bool
  ) async throws -> [[Int]] {
    let outcomes = said.map {
      RecordedOutcome(
        // As it was said at any time.
        account: store.hashes(of: Self.accounts[$0.account]).one(number: $0.generation), consumer: Sample.relay,
        event: Sample.valid(EventID("said")), at: $0.time,
        ending: $0.ending)
    }
    let changed = try await store.reconcile(with: outcomes, isRehearsal: isRehearsal)
    let hashes = Self.accounts.map { store.hash(of: $0) }
    return [changed.erased, changed.fenced, changed.mail, changed.tokens].map { some in
      hashes.indices.filter { some.contains(hashes[$0]) }
    }
  }

  /// What happens, drawn from few accounts, moments, weights and apps, so that all of it meets.
  private struct History {
    struct Said {
      let account: Int
      let generation: Int
      let time: Timestamp
      let ending: RecordedOutcome.Ending
    }

    var random = SeededRandom()
    private var number = 0
    private let apps = ["com.example.one", "com.example.two"].map { Sample.valid(ClientID($0)) }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
      values[Int.random(in: values.indices, using: &random)]
    }
    private mutating func isSo() -> Bool { Bool.random(using: &random) }
    private mutating func moment() -> Int64 { Int64.random(in: 1...30, using: &random) }

    mutating func signIn() -> (account: Account, time: Timestamp, tokens: [NewToken]) {
      let seconds = moment()
      let tokens = (0..<Int.random(in: 0...2, using: &random)).map { place in
        NewToken(
          kind: pick(NewToken.Kind.allCases), client: pick(apps),
          value: Sample.valid(SecretToken("token-\(seconds)-\(place)")))
      }
      return (pick(StoreAgreementTests.accounts), Sample.time(seconds), tokens)
    }

    mutating func outcomes() -> [Said] {
      (0..<Int.random(in: 1...4, using: &random)).map { _ in
        let endings: [RecordedOutcome.Ending] = [
          .erased(isFinal: isSo()), .mailForgotten(isFinal: isSo()), .mailChanged, .tokensEnded,
        ]
        return Said(
          account: Int.random(in: 0..<3, using: &random), generation: Int.random(in: 0..<100, using: &random),
          time: Sample.time(moment()), ending: pick(endings))
      }
    }

    mutating func claims() -> [PartitionClaim] {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in
        PartitionClaim(partition(), beginsAnewAt: isSo() ? nil : moment())
      }
    }

    /// Of the claims of some rounds ago, mostly.
    mutating func marks() -> [AnnouncedMark] {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in
        AnnouncedMark(
          consumer: Sample.relay, partition: partition(), claim: Int64.random(in: 1...6, using: &random),
          offset: moment(), beyond: isSo() ? "" : "\(moment())")
      }
    }

    mutating func attempts(at time: Timestamp) -> [FailedAttempt] {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in
        FailedAttempt(
          at: Sample.event("event-\(number + Int.random(in: 1...3, using: &random))", at: 1),
          by: pick(StoreAgreementTests.consumers), cause: "any", time: time)
      }
    }

    mutating func questions() -> [TokenQuestion] {
      (0..<Int.random(in: 0...4, using: &random)).map { _ in
        TokenQuestion(
          of: pick(StoreAgreementTests.accounts), issuedUpTo: Sample.time(moment()),
          clients: pick([nil, [], [apps[0]], Set(apps)]))
      }
    }

    private mutating func partition() -> SourcePartition {
      SourcePartition(topic: pick(["apple.account-events.v1", "retry"]), partition: Int32(isSo() ? 0 : 9))
    }

    mutating func settlements() -> [Settlement] {
      (0..<Int.random(in: 1...6, using: &random)).map { _ in
        // Now and then one that was there before.
        if number < 5 || Int.random(in: 0..<6, using: &random) > 0 { number += 1 }
        let account = pick(StoreAgreementTests.accounts)
        let (severity, seconds) = (Int.random(in: 0...2, using: &random), moment())
        let event = EventReference(
          id: Sample.valid(EventID("event-\(number)")), account: account, hash: Sample.hash(of: account),
          occurredAt: Sample.time(seconds),
          origin: EventOrigin(topic: "apple.account-events.v1", partition: 0, offset: Int64(number)),
          weight: EventWeight(
            severity: severity, tie: Int.random(in: 0...1, using: &random),
            covers: Int.random(in: 0...severity, using: &random)),
          yieldsTo: pick([[], [.signIn], [.erasure], [.signIn, .erasure]]))
        if Int.random(in: 0..<8, using: &random) == 0 {
          return Settlement(ofVoid: event, by: pick(StoreAgreementTests.consumers))
        }
        let changes = (0..<Int.random(in: 0...2, using: &random)).map { _ in change(at: seconds) }
        return Settlement(
          of: event, by: pick(StoreAgreementTests.consumers), outcome: "done",
          detail: isSo() ? "" : "detail of \(number)",
          changes: changes)
      }
    }

    private mutating func change(at seconds: Int64) -> StoreChange {
      pick([
        .setRelay(isSo() ? Sample.enabled(seconds) : Sample.disabled(seconds)), .removeRelay,
        .endTokens(issuedUpTo: Sample.time(seconds), of: isSo() ? nil : [pick(apps)]),
        .noteOwnRevocation(of: pick(apps), isProven: isSo()), .eraseAccount(isFinal: isSo()),
        .eraseAccount(isFinal: isSo()), .fenceAccount(isFinal: isSo()),
      ])
    }
  }
}

extension [AccountHash] {
  /// One of them.
  fileprivate func one(number: Int) -> AccountHash { self[number % count] }
}
