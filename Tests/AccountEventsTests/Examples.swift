// swift-format-ignore-file: NeverForceUnwrap
// What is valid by being written here.

import AccountEvents

/// One record of each kind, as `Golden/` holds them.
enum Examples {
  static let team = TeamID("A1B2C3D4E5")!
  static let audience = ClientID("com.example.app")!
  static let subject = AppleSubject("000768.6166f031167141e695698239959f591a.1521")!
  static let address = RelayAddress("zdfu7jtuus@privaterelay.appleid.com")!
  static let occurredAt = Timestamp(milliseconds: 1_657_617_063_012)!
  static let issuedAt = Timestamp(seconds: 1_657_617_092)!
  static let jti = EventID("S25cB0PbHs6y97gYYmgydQ")!
  /// Of the form of a notification, and none.
  static let jws = [UInt8]("eyJraWQiOiJmaDZCczhDIiwiYWxnIjoiUlMyNTYifQ.e30.c2lnbmF0dXJl".utf8)

  /// One that Apple had.
  static let signingKey = AppleSigningKey(
    id: KeyID("fh6Bs8C")!,
    modulus: "u704gotMSZc6CSSVNCZ1d0S9dZKwO2BVzfdTKYz8wSNm7R_KIufOQf3ru7Pph1FjW6gQ8zgvhnv4Iebk"
      + "GWsZJlodduTC7c0sRb5PZpEyM6PtO8FPHowaracJJsK1f6_rSLstLdWbSDXeSq7vBvDu3Q31RaoV_0Yl"
      + "EzQwPsbCvD45oVy5Vo5oBePUm4cqi6T3cZ-10gr9QJCVwvx7KiQsttp0kUkHM94PlxbG_HAWlEZjvAlx"
      + "fEDc-_xZQwC6fVjfazs3j1b2DZWsGmBRdx1snO75nM7hpyRRQB4jVejW9TuZDtPtsNadXTr9I5NjxPdI"
      + "YMORj9XKEh44Z73yfv0gtw",
    firstSeen: issuedAt)!

  static let kinds: [AccountEvent.Kind] = [
    .emailEnabled(address, isPrivate: true), .emailDisabled(address, isPrivate: false), .consentRevoked,
    .accountDelete, .accountDeletionRequested, .credentialInvalid, .accountTransferred,
  ]

  static func event(_ kind: AccountEvent.Kind, id: EventID = jti) -> AccountEvent {
    AccountEvent(
      id: id, team: team, audience: audience, subject: subject, kind: kind, occurredAt: occurredAt, issuedAt: issuedAt)
  }

  static func quarantined(_ reason: QuarantinedEvent.Reason, subject: AppleSubject?, json: String) -> QuarantinedEvent {
    QuarantinedEvent(
      id: jti, team: team, audience: audience, subject: subject, issuedAt: issuedAt, reason: reason,
      json: [UInt8](json.utf8))
  }

  static func outcome(
    _ name: AccountOutcome.Name, because reason: AccountOutcome.Reason? = nil, of kind: AccountEvent.Kind,
    key: HashKeyID? = nil, targets: [AccountOutcome.Target] = []
  ) -> AccountOutcome {
    AccountOutcome(
      account: AccountHash([UInt8](0..<32), key: key)!, name: name, reason: reason,
      cause: AccountOutcome.Cause(event(kind)),
      consumer: "data-eraser", doneAt: issuedAt, targets: targets)
  }

  /// Of every reason, as a consumer says it.
  static let withoutEffect = AccountOutcome.Reason.allCases.map { outcome(.noEffect, because: $0, of: .consentRevoked) }

  static let discarded = outcome(
    .accountErased, of: .accountDelete,
    targets: [
      AccountOutcome.Target(
        name: "shop", state: "discarded", before: 12, affected: nil, after: nil,
        note: #"discarded by bob: "the shop is closed""#)
    ])

  static let erased = outcome(
    .accountErased, of: .accountDelete,
    targets: [
      AccountOutcome.Target(name: "shop", state: "erased", before: 12, affected: 12, after: 0),
      AccountOutcome.Target(name: "invoices", state: "retained", before: nil, affected: nil, after: nil),
    ])

  static func relay(_ status: RelayState.Status, to address: RelayAddress?) -> RelayRecord {
    RelayRecord(
      account: Account(team: team, subject: subject),
      state: RelayState(status: status, address: address, isPrivate: address != nil, since: issuedAt), event: jti)
  }

  /// The records by the name of the file in `Golden/`.
  static let golden: [(name: String, record: EventRecord)] =
    kinds.map { ($0.name, EventRecord(event($0), jws: $0.isOurOwn ? nil : jws)) } + [
      (
        "quarantined-unknown-type",
        EventRecord(
          quarantined(
            .unknownType, subject: subject,
            json: #"{"type":"age-changed","sub":"\#(subject.text)","event_time":1657617063012}"#), jws: jws)
      ),
      (
        "quarantined-unknown-form",
        EventRecord(
          quarantined(
            .unknownForm, subject: nil,
            json: #"{"iss":"https://appleid.apple.com","jti":"S25cB0PbHs6y97gYYmgydQ","events":7}"#), jws: jws)
      ),
      (
        "operator-request",
        EventRecord(
          event(.accountDeletionRequested, id: EventID("operator-S25cB0PbHs6y97gYYmgydQ-1a0")!), requestedBy: "bob",
          because: "a letter", code: { _ in "Zo1WnGkMRQpNIBTvGfsuPLcZ2vfzZ8dSWj1kdlbJFzk" })
      ),
      (
        "found-invalid",
        EventRecord(
          event(.credentialInvalid, id: EventID("credential-S25cB0PbHs6y97gYYmgydQ")!), requestedBy: nil, because: nil,
          code: { _ in "Zo1WnGkMRQpNIBTvGfsuPLcZ2vfzZ8dSWj1kdlbJFzk" })
      ), ("signing-key", EventRecord(signingKey)),
      ("account-erased", EventRecord(erased)), ("account-erased-but-for-one", EventRecord(discarded)),
      ("no-effect", EventRecord(outcome(.noEffect, because: .supersededByNewerEvent, of: .consentRevoked))),
      ("email-relay", EventRecord(relay(.disabled, to: address))),
      ("email-relay-without-address", EventRecord(relay(.enabled, to: nil))),
      ("sessions-ended", EventRecord(outcome(.sessionsEnded, of: .consentRevoked))),
      (
        "sessions-ended-rotated",
        EventRecord(outcome(.sessionsEnded, of: .consentRevoked, key: HashKeyID("00fedcba98765432")))
      ),
    ]
}
