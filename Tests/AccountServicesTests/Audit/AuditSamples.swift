// swift-format-ignore-file: NeverForceUnwrap
// What is valid by being written here.

import AccountEvents
import AccountServices
import AccountStore
import Cryptography
import Kafka

/// Entries of each kind, as `Golden/` holds them, and the records that they are made of.
enum AuditSamples {
  static let team = TeamID("A1B2C3D4E5")!
  static let audience = ClientID("com.example.app")!
  static let subject = AppleSubject("000768.6166f031167141e695698239959f591a.1521")!
  static let occurredAt = Timestamp(milliseconds: 1_657_617_063_012)!
  static let issuedAt = Timestamp(seconds: 1_657_617_092)!
  static let loggedAt = Timestamp(milliseconds: 1_657_617_099_345)!
  static let id = EventID("S25cB0PbHs6y97gYYmgydQ")!
  static let account = AccountHash([UInt8](0..<32))!
  static let jws = [UInt8]("eyJraWQiOiJmaDZCczhDIiwiYWxnIjoiUlMyNTYifQ.e30.c2lnbmF0dXJl".utf8)

  static func event(
    _ kind: AccountEvent.Kind = .accountDelete, id: EventID = id, subject: AppleSubject = subject
  ) -> AccountEvent {
    AccountEvent(
      id: id, team: team, audience: audience, subject: subject, kind: kind, occurredAt: occurredAt, issuedAt: issuedAt)
  }

  static func source(_ topic: Topic, _ partition: Int32, _ offset: Int64) -> AuditEntry.Source {
    AuditEntry.Source(RecordOrigin(topic.name, partition, offset), at: loggedAt)
  }

  static let obligation = AuditEntry.Obligation(
    event(), at: source(.accountEvents, 3, 17), account: account, jws: SHA256.digest(of: jws), keyID: KeyID("fh6Bs8C"),
    signature: .verified)

  static let requested = AuditEntry.Obligation(
    event(.accountDeletionRequested, id: EventID("operator-AAECAwQFBgcICQoLDA0ODw-Zm8")!),
    at: source(.accountEvents, 0, 4), account: account, jws: nil, keyID: nil, signature: .none)

  static func outcome(targets: Int = 2) -> AccountOutcome {
    AccountOutcome(
      account: account, name: .accountErased, cause: AccountOutcome.Cause(event()), consumer: "data-eraser",
      doneAt: issuedAt,
      targets: (0..<targets).map { number in
        AccountOutcome.Target(name: "shop-\(number)", state: "erased", before: 12, affected: 12, after: 0)
      })
  }

  /// A record as it is read of its topic.
  static func read(
    _ record: EventRecord, _ partition: Int32 = 0, _ offset: Int64 = 0, at time: Timestamp? = loggedAt
  ) -> ConsumedRecord {
    ConsumedRecord(
      topic: record.topic.name, position: KafkaPosition(partition: partition, offset: offset), key: record.key,
      value: record.value, headers: record.headers.map { KafkaHeader($0.name, $0.value) },
      timestamp: time?.milliseconds)
  }

  static let discarded = AuditEntry.Decision(
    .discarded, at: source(.deadLetters(of: "data-eraser"), 0, 9), time: issuedAt, by: "bob",
    because: "their contract says \"never\": Müller & Co.\n", letter: LetterPlace("0/7"), id: id, team: nil,
    audience: nil)

  static let released = AuditEntry.Decision(
    .released, at: source(.quarantine, 0, 2), time: issuedAt, by: "alice", because: nil, letter: LetterPlace("0/1"),
    id: id, team: team, audience: audience)

  static let gap = AuditEntry.Gap(.missing, topic: Topic.outcomes.name, partition: 11, from: 5, to: 8, at: loggedAt)

  /// Of an account that was hashed with a later key of the store.
  static let rekeyed = AuditEntry.Obligation(
    event(.consentRevoked), at: source(.accountEvents, 3, 18),
    account: AccountHash([UInt8](32..<64), key: HashKeyID("00aa11bb22cc33dd"))!, jws: SHA256.digest(of: jws),
    keyID: KeyID("fh6Bs8C"), signature: .verified)

  /// Each with the name of its file.
  static let golden: [(name: String, entry: AuditEntry)] = [
    ("obligation", .obligation(obligation)), ("obligation-requested", .obligation(requested)),
    ("obligation-rekeyed", .obligation(rekeyed)),
    ("effect", .effect(AuditEntry.Effect(read(EventRecord(outcome()), 2, 40))!)),
    ("decision-discarded", .decision(discarded)), ("decision-released", .decision(released)), ("gap", .gap(gap)),
  ]
}
