import AccountEvents
import AccountStore
import Cryptography
import EventLoop
import Testing

/// What never looks alike by accident: each can be looked for in the bytes of a file.
enum Sample {
  static let relay = consumer("email-relay")
  static let revoker = consumer("token-revoker")
  static let eraser = consumer("data-eraser")
  static let client = valid(ClientID("com.example.app"))

  static func valid<Value>(_ value: Value?) -> Value {
    guard let value else { preconditionFailure("a sample that is not valid") }
    return value
  }

  static func consumer(_ name: String) -> ConsumerName { valid(ConsumerName(name)) }

  static func account(_ number: Int = 1) -> Account {
    Account(team: valid(TeamID("A1B2C3D4E5")), subject: valid(AppleSubject("\(number).subject-of-a-person.\(number)")))
  }

  static func address(_ number: Int = 1) -> RelayAddress {
    valid(RelayAddress("\(number)-address@privaterelay.example.com"))
  }

  static func token(_ number: Int = 1, _ kind: NewToken.Kind = .refresh) -> NewToken {
    NewToken(kind: kind, client: client, value: valid(SecretToken("r\(number).secret-of-a-token.\(number)")))
  }

  /// The moment so many seconds after one in 2027.
  static func time(_ seconds: Int64) -> Timestamp { valid(Timestamp(seconds: 1_800_000_000 + seconds)) }

  /// What accounts are hashed with in the stores of these tests, where a test does not say otherwise.
  static let hashKey = [UInt8](repeating: 0x42, count: 32)

  static func hash(of account: Account) -> AccountHash {
    valid(AccountHash(HMAC(key: hashKey).code(for: account.key).bytes))
  }

  static func event(
    _ id: String, of account: Account = account(), hash: AccountHash? = nil, at seconds: Int64, severity: Int = 0,
    tie: Int = 0, yieldsTo: Set<EventReference.Precedence> = [], partition: Int32 = 0, offset: Int64 = 7
  ) -> EventReference {
    EventReference(
      id: valid(EventID(id)), account: account, hash: hash ?? self.hash(of: account), occurredAt: time(seconds),
      origin: EventOrigin(topic: "apple.account-events.v1", partition: partition, offset: offset),
      weight: EventWeight(severity: severity, tie: tie), yieldsTo: yieldsTo)
  }

  static func enabled(_ seconds: Int64, _ address: Int = 1) -> RelayState {
    RelayState(status: .enabled, address: Self.address(address), isPrivate: true, since: time(seconds))
  }

  static func disabled(_ seconds: Int64, _ address: Int = 1) -> RelayState {
    RelayState(status: .disabled, address: Self.address(address), isPrivate: true, since: time(seconds))
  }
}

extension EventReference {
  func settled(
    by consumer: ConsumerName = Sample.relay, detail: String = "", _ changes: StoreChange...
  ) -> Settlement {
    Settlement(of: self, by: consumer, outcome: "done", detail: detail, changes: changes)
  }

  /// What the ledger has of it, once it is settled as above.
  func entry(_ outcome: String = "done", detail: String = "", at time: Timestamp) -> LedgerEntry {
    LedgerEntry(origin: origin, outcome: outcome, detail: detail, at: time)
  }
}

extension EventStanding {
  var isSettled: Bool { if case .settled = self { true } else { false } }
}

extension SettledOutcome {
  var isRepeated: Bool { if case .repeated = self { true } else { false } }
}

func newMasterKey() throws -> MasterKey { try #require(MasterKey(try SecureRandom.bytes(32))) }

func newHashKey() throws -> HashKey { try #require(HashKey(try SecureRandom.bytes(32))) }

extension AccountStore {
  /// Writes of each account whatever a store may hold of somebody: its sign-in, a token, the state of its mail, a failed
  /// attempt.
  @Loop
  func fill(_ accounts: ClosedRange<Int>, at now: Timestamp = Sample.time(10_000)) async throws {
    for number in accounts {
      let account = Sample.account(number)
      _ = try await recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(number)])
      let event = Sample.event("e\(number)", of: account, at: 2)
      _ = try await settle([event.settled(.setRelay(Sample.enabled(2, number)))], at: now)
      _ = try await count([
        FailedAttempt(at: Sample.event("f", of: account, at: 3), by: Sample.revoker, cause: "any", time: now)
      ])
    }
  }
}
