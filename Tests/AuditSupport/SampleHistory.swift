// swift-format-ignore-file: NeverForceUnwrap
// What is valid by being written here.

package import AccountEvents
package import AccountServices
package import AccountStore
import Cryptography
import Kafka

/// What a log says of a few events, as it is told to it: the seconds count from `begin`.
package struct SampleHistory: Sendable {
  /// When it begins: on the first of January 2026.
  package static let begin = Timestamp(rfc3339: "2026-01-01")!
  /// The team of all events.
  package static let team = TeamID("A1B2C3D4E5")!
  /// The app of all events.
  package static let audience = ClientID("com.example.app")!

  /// The entries so far.
  package private(set) var entries: [AuditEntry] = []
  private var offset: Int64 = 0

  /// Nothing yet.
  package init() {}

  /// A moment so many seconds from the beginning.
  package static func moment(_ seconds: Double) -> Timestamp { begin + .milliseconds(Int64(seconds * 1000)) }

  /// The keyed hash of an account.
  package static func account(_ number: UInt8) -> AccountHash { AccountHash([UInt8](repeating: number, count: 32))! }

  private mutating func source(_ topic: Topic, at seconds: Double) -> AuditEntry.Source {
    offset += 1
    return AuditEntry.Source(RecordOrigin(topic.name, 0, offset), at: Self.moment(seconds))
  }

  private func event(_ id: String, _ kind: AccountEvent.Kind, at seconds: Double) -> AccountEvent {
    AccountEvent(
      id: EventID(id)!, team: Self.team, audience: Self.audience, subject: AppleSubject("000768.6166.1521")!,
      kind: kind,
      occurredAt: Self.moment(seconds - 5), issuedAt: Self.moment(seconds - 1))
  }

  /// An event comes.
  package mutating func comes(
    _ id: String, _ kind: AccountEvent.Kind = .accountDelete, at seconds: Double, account: UInt8 = 1,
    signature: AuditEntry.Obligation.Signature = .verified
  ) {
    let isSigned = signature != .none
    entries.append(
      .obligation(
        AuditEntry.Obligation(
          event(id, kind, at: seconds), at: source(.accountEvents, at: seconds), account: Self.account(account),
          jws: isSigned ? SHA256.digest(of: Array(id.utf8)) : nil, keyID: isSigned ? KeyID("fh6Bs8C") : nil,
          signature: signature)))
  }

  /// A consumer says what it did about an event that came at `came`.
  package mutating func does(
    _ name: AccountOutcome.Name, _ id: String, _ kind: AccountEvent.Kind = .accountDelete, by consumer: ConsumerName,
    at seconds: Double, account: UInt8 = 1, reason: AccountOutcome.Reason? = nil, targets: [AccountOutcome.Target] = []
  ) {
    let outcome = AccountOutcome(
      account: Self.account(account), name: name, reason: reason,
      cause: AccountOutcome.Cause(event(id, kind, at: 0)), consumer: consumer.text, doneAt: Self.moment(seconds),
      targets: targets)
    let record = EventRecord(outcome)
    offset += 1
    let read = ConsumedRecord(
      topic: record.topic.name, position: KafkaPosition(partition: 0, offset: offset), key: record.key,
      value: record.value, headers: [], timestamp: Self.moment(seconds).milliseconds)
    entries.append(.effect(AuditEntry.Effect(read)!))
  }

  /// All that consumers say about the end of an account, each a second after the other.
  package mutating func isDone(
    _ id: String, _ kind: AccountEvent.Kind = .accountDelete, at seconds: Double, account: UInt8 = 1
  ) {
    if kind != .mailOn, kind != .mailOff, kind != .accountTransferred {
      does(.tokensRevoked, id, kind, by: .tokenRevoker, at: seconds, account: account)
      does(.sessionsEnded, id, kind, by: .tokenRevoker, at: seconds, account: account)
      does(
        .accountErased, id, kind, by: .dataEraser, at: seconds + 1, account: account,
        targets: [.init(name: "shop", state: "erased", before: 1, affected: 3, after: 0)])
    }
    let name: AccountOutcome.Name = kind == .accountTransferred ? .accountTransferred : .relayChanged
    does(name, id, kind, by: .emailRelay, at: seconds + 2, account: account)
  }

  /// A person decides about a letter.
  package mutating func decides(
    _ kind: AuditEntry.Decision.Kind, _ id: String, of consumer: ConsumerName?, at seconds: Double, by person: String,
    because reason: String?
  ) {
    let topic = consumer.map { Topic.deadLetters(of: $0) } ?? .quarantine
    entries.append(
      .decision(
        AuditEntry.Decision(
          kind, at: source(topic, at: seconds), time: Self.moment(seconds), by: person, because: reason,
          letter: LetterPlace("0/1"), id: EventID(id), team: nil, audience: nil)))
  }

  /// The log notices that it has not seen everything.
  package mutating func misses(_ offsets: Range<Int64>, of topic: Topic, at seconds: Double) {
    entries.append(
      .gap(
        AuditEntry.Gap(
          .missing, topic: topic.name, partition: 3, from: offsets.lowerBound, to: offsets.upperBound,
          at: Self.moment(seconds))))
  }
}

extension AccountEvent.Kind {
  /// Mail is forwarded again.
  package static var mailOn: Self { .emailEnabled(RelayAddress("x@privaterelay.appleid.com")!, isPrivate: true) }
  /// Mail is rejected.
  package static var mailOff: Self { .emailDisabled(RelayAddress("x@privaterelay.appleid.com")!, isPrivate: true) }
  /// One of each.
  package static var each: [Self] {
    [
      .mailOn, .mailOff, .consentRevoked, .accountDelete, .accountDeletionRequested, .credentialInvalid,
      .accountTransferred,
    ]
  }
}
