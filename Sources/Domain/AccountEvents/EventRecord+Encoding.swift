extension EventRecord {
  /// The record of an event, with the notification (`jws`, in compact form) that proves it; nil for one of our own.
  public init(_ event: AccountEvent, jws: [UInt8]?) {
    self.init(
      topic: .accountEvents, id: event.id, source: event.kind.sourceHeader, type: event.kind.typeHeader,
      time: event.occurredAt, team: event.team, audience: event.audience, subject: event.subject,
      key: event.account.key, value: event.json, reason: nil, jws: jws)
  }

  /// The record of an event of our own. A deletion that was asked for: by an operator, who stands in its headers with the
  /// reason, without personal data of the account's; or, where `person` is nil, by the account's own person in the app. Or
  /// a finding of ours, without a person. Nobody has signed it, so `code` vouches for it with the key of the account store.
  package init(
    _ event: AccountEvent, requestedBy person: String?, because reason: String?, code: (DeletionRequest) -> String
  ) {
    let record = EventRecord(
      topic: .accountEvents, id: event.id, source: person == nil ? .accounts : .operator, type: event.kind.typeHeader,
      time: event.occurredAt, team: event.team, audience: event.audience, subject: event.subject,
      key: event.account.key, value: event.json, reason: nil, jws: nil)
    let request = DeletionRequest(
      record.value, by: Array((person ?? "").utf8), because: Array((reason ?? "").utf8))
    var headers = record.headers
    if let person { headers.append(Header(Self.requestedByHeader, person)) }
    if let reason { headers.append(Header(Self.requestReasonHeader, reason)) }
    headers.append(Header(Self.requestCodeHeader, code(request)))
    self.init(topic: record.topic, key: record.key, value: record.value, headers: headers)
  }

  /// The record of what is kept aside, with the notification that proves it. The value is Apple's own JSON.
  public init(_ event: QuarantinedEvent, jws: [UInt8]) {
    self.init(
      topic: .quarantine, id: event.id, source: .apple, type: .quarantined, time: event.issuedAt, team: event.team,
      audience: event.audience, subject: event.subject, key: event.key, value: event.json, reason: event.reason,
      jws: jws)
  }

  /// The record of a key that verified something. The value is a JWK, and the record is the key's own, whoever writes it.
  public init(_ key: AppleSigningKey) {
    let id = [UInt8](key.id.text.utf8)
    let headers: [Header] = [
      .specificationVersion, Header(name: "ce_id", value: id), .apple, .signingKey,
      Header(name: "ce_time", value: key.firstSeen.rfc3339), Header(name: "ce_partitionkey", value: id), .contentType,
    ]
    (self.topic, self.key, self.value, self.headers) = (.signingKeys, id, key.json, headers)
  }

  /// The record of an outcome, keyed by the account's hash; the same whenever it is written anew.
  public init(_ outcome: AccountOutcome) {
    let key = outcome.account.digits
    let headers: [Header] = [
      .specificationVersion, outcome.idHeader, Header("ce_source", "urn:siwa:", outcome.consumer),
      outcome.name.typeHeader,
      Header(name: "ce_time", value: outcome.doneAt.rfc3339), Header(name: "ce_partitionkey", value: key), .contentType,
    ]
    (self.topic, self.key, self.value, self.headers) = (.outcomes, key, outcome.json, headers)
  }

  /// The record of a relay state, keyed by the account.
  public init(_ relay: RelayRecord) {
    let key = relay.account.key
    let headers: [Header] = [
      .specificationVersion, Header("ce_id", relay.event.text, ".email-relay"), .relay, .emailRelay,
      Header("ce_subject", relay.account.subject.text),
      Header(name: "ce_time", value: relay.state.since.rfc3339), Header(name: "ce_partitionkey", value: key),
      Header("ce_team", relay.account.team.text), .contentType,
    ]
    (self.topic, self.key, self.value, self.headers) = (.emailRelay, key, relay.json, headers)
  }

  private init(
    topic: Topic, id: EventID, source: Header, type: Header, time: Timestamp, team: TeamID, audience: ClientID,
    subject: AppleSubject?, key: [UInt8], value: [UInt8], reason: QuarantinedEvent.Reason?, jws: [UInt8]?
  ) {
    var headers: [Header] = []
    headers.reserveCapacity(12)
    headers.append(.specificationVersion)
    headers.append(Header("ce_id", id.text))
    headers.append(source)
    headers.append(type)
    if let subject { headers.append(Header("ce_subject", subject.text)) }
    headers.append(Header(name: "ce_time", value: time.rfc3339))
    headers.append(Header(name: "ce_partitionkey", value: key))
    headers.append(Header("ce_team", team.text))
    headers.append(Header("ce_audience", audience.text))
    headers.append(.contentType)
    if let reason { headers.append(Header(Self.reasonHeader, reason.rawValue)) }
    if let jws { headers.append(Header(name: Self.signatureHeader, value: jws)) }
    (self.topic, self.key, self.value, self.headers) = (topic, key, value, headers)
  }
}

extension EventRecord.Header {
  /// A header of up to three texts, one behind the other.
  fileprivate init(_ name: String, _ first: String, _ second: String = "", _ third: String = "") {
    var value: [UInt8] = []
    value.reserveCapacity(first.utf8.count + second.utf8.count + third.utf8.count)
    value.append(contentsOf: first.utf8)
    value.append(contentsOf: second.utf8)
    value.append(contentsOf: third.utf8)
    self.init(name: name, value: value)
  }

  // The same in all records: made once, shared by all.
  fileprivate static let specificationVersion = Self("ce_specversion", "1.0")
  fileprivate static let contentType = Self("content-type", "application/json")
  fileprivate static let apple = Self("ce_source", "https://appleid.apple.com")
  fileprivate static let accounts = Self("ce_source", "urn:siwa:accounts")
  fileprivate static let `operator` = Self("ce_source", "urn:siwa:operator")
  fileprivate static let relay = Self("ce_source", "urn:siwa:email-relay")
  fileprivate static let quarantined = Self("ce_type", "com.apple.siwa.quarantined.v1")
  fileprivate static let signingKey = Self("ce_type", "com.apple.siwa.signing-key.v1")
  fileprivate static let emailRelay = Self("ce_type", "com.apple.siwa.email-relay.v1")
  fileprivate static let emailEnabled = Self("ce_type", "com.apple.siwa.email-enabled.v1")
  fileprivate static let emailDisabled = Self("ce_type", "com.apple.siwa.email-disabled.v1")
  fileprivate static let consentRevoked = Self("ce_type", "com.apple.siwa.consent-revoked.v1")
  fileprivate static let accountDelete = Self("ce_type", "com.apple.siwa.account-delete.v1")
  fileprivate static let accountDeletionRequested = Self("ce_type", "com.apple.siwa.account-deletion-requested.v1")
  fileprivate static let credentialInvalid = Self("ce_type", "com.apple.siwa.credential-invalid.v1")
  fileprivate static let accountTransferred = Self("ce_type", "com.apple.siwa.account-transferred.v1")
  fileprivate static let tokensRevoked = Self("ce_type", "com.apple.siwa.tokens-revoked.v1")
  fileprivate static let revocationUnproven = Self("ce_type", "com.apple.siwa.revocation-unproven.v1")
  fileprivate static let noToken = Self("ce_type", "com.apple.siwa.no-token.v1")
  fileprivate static let sessionsEnded = Self("ce_type", "com.apple.siwa.sessions-ended.v1")
  fileprivate static let accountErased = Self("ce_type", "com.apple.siwa.account-erased.v1")
  fileprivate static let relayChanged = Self("ce_type", "com.apple.siwa.relay-changed.v1")
  fileprivate static let noEffect = Self("ce_type", "com.apple.siwa.no-effect.v1")
}

extension AccountOutcome {
  /// One for each outcome of an event. Several consumers may have done nothing about it; of all others a name is one
  /// consumer's alone.
  fileprivate var idHeader: EventRecord.Header {
    name == .noEffect
      ? EventRecord.Header("ce_id", cause.id.text, ".no-effect.", consumer)
      : EventRecord.Header("ce_id", cause.id.text, ".", name.rawValue)
  }
}

extension AccountOutcome.Name {
  fileprivate var typeHeader: EventRecord.Header {
    switch self {
    case .tokensRevoked: .tokensRevoked
    case .revocationUnproven: .revocationUnproven
    case .noToken: .noToken
    case .sessionsEnded: .sessionsEnded
    case .accountErased: .accountErased
    case .relayChanged: .relayChanged
    case .accountTransferred: .accountTransferred
    case .noEffect: .noEffect
    }
  }
}

extension AccountEvent.Kind {
  fileprivate var typeHeader: EventRecord.Header {
    switch self {
    case .emailEnabled: .emailEnabled
    case .emailDisabled: .emailDisabled
    case .consentRevoked: .consentRevoked
    case .accountDelete: .accountDelete
    case .accountDeletionRequested: .accountDeletionRequested
    case .credentialInvalid: .credentialInvalid
    case .accountTransferred: .accountTransferred
    }
  }

  /// Who saw it happen: Apple, or our own accounts service.
  fileprivate var sourceHeader: EventRecord.Header { isOurOwn ? .accounts : .apple }
}
