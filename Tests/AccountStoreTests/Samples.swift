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

  static func event(
    _ id: String, of account: Account = account(), at seconds: Int64, severity: Int = 0, tie: Int = 0,
    yieldsTo: Set<EventReference.Precedence> = [], partition: Int32 = 0
  ) -> EventReference {
    EventReference(
      id: valid(EventID(id)), account: account, occurredAt: time(seconds),
      origin: EventOrigin(topic: "apple.account-events.v1", partition: partition, offset: 7),
      weight: EventWeight(severity: severity, tie: tie), yieldsTo: yieldsTo)
  }

  static func enabled(_ seconds: Int64, _ address: Int = 1) -> RelayState {
    RelayState(status: .enabled, address: Self.address(address), isPrivate: true, since: time(seconds))
  }

  static func disabled(_ seconds: Int64, _ address: Int = 1) -> RelayState {
    RelayState(status: .disabled, address: Self.address(address), isPrivate: true, since: time(seconds))
  }

  static func announcement(_ text: String, tombstone: Bool = false) -> Announcement {
    Announcement(
      topic: Topic(name: "apple.email-relay.v1"), key: Array("key of \(text)".utf8),
      value: tombstone ? nil : Array("value of \(text)".utf8),
      headers: [EventRecord.Header(name: "ce_id", value: Array(text.utf8))])
  }
}

extension EventReference {
  func settled(
    by consumer: ConsumerName = Sample.relay, _ changes: StoreChange..., announcing announcements: [Announcement] = []
  ) -> Settlement {
    Settlement(of: self, by: consumer, outcome: "done", changes: changes, announcements: announcements)
  }
}

func newMasterKey() throws -> MasterKey { try #require(MasterKey(try SecureRandom.bytes(32))) }

extension AccountStore {
  /// Writes of each account whatever a store may hold of somebody: its sign-in, a token, the state of its mail, what is to
  /// be said of it, a failed attempt.
  @Loop
  func fill(_ accounts: ClosedRange<Int>, at now: Timestamp = Sample.time(10_000)) async throws {
    for number in accounts {
      let account = Sample.account(number)
      _ = try await recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(number)])
      let event = Sample.event("e\(number)", of: account, at: 2)
      let said = Announcement(
        topic: Topic(name: "apple.email-relay.v1"), key: account.key, value: Array(Sample.address(number).text.utf8),
        headers: [])
      _ = try await settle([event.settled(.setRelay(Sample.enabled(2, number)), announcing: [said])], at: now)
      _ = try await countAttempt(
        FailedAttempt(at: Sample.event("f", of: account, at: 3), by: Sample.revoker, cause: "any", time: now))
    }
  }
}
