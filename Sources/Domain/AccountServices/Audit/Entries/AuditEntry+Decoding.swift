import AccountEvents
import Cryptography
import JSON

/// Why bytes are no entry of this version.
package struct AuditEntryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The closed list of reasons.
  package enum Code: String, Sendable, CaseIterable {
    /// No JSON object, or one that is larger or deeper than any entry.
    case malformedJSON = "malformed-json"
    /// Of a kind or of a version that this program does not know.
    case unknownForm = "unknown-form"
    /// A member is missing, or its value is not of its form.
    case malformedMember = "malformed-member"
    /// An entry in another than its canonical form, or with members that it does not have.
    case notCanonical = "not-canonical"
  }

  /// The reason.
  package let code: Code
  /// The member that is meant, or what the JSON reader said; never anything of a value.
  package let detail: String

  /// The code and the detail.
  package var description: String { "\(code.rawValue): \(detail)" }

  static func malformed(_ member: String) -> Self { Self(code: .malformedMember, detail: member) }
}

extension AuditEntry {
  /// As deep as an outcome, and one more.
  private static let limits = JSONLimits(bytes: maximumSize, depth: 17, members: 8192)

  /// Reads an entry of the log, in exactly the form in which `bytes` writes it.
  package init(decoding bytes: [UInt8]) throws(AuditEntryError) {
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(decoding: bytes, Self.limits) } catch {
      throw AuditEntryError(code: .malformedJSON, detail: "\(error)")
    }
    guard value["v"]?.integer == Self.version else { throw AuditEntryError(code: .unknownForm, detail: "v") }
    let members = EntryMembers(value)
    switch value["kind"]?.text {
    case "obligation": self = .obligation(try Obligation(members))
    case "effect": self = .effect(try Effect(members))
    case "decision": self = .decision(try Decision(members))
    case "gap": self = .gap(try Gap(members))
    default: throw AuditEntryError(code: .unknownForm, detail: "kind")
    }
    // Also refuses members that the kind does not have: they are not written.
    guard self.bytes == bytes else { throw AuditEntryError(code: .notCanonical, detail: "the entry") }
  }
}

/// The members of an entry that is read.
private struct EntryMembers {
  private let object: JSONValue

  init(_ object: JSONValue) { self.object = object }

  func value(_ name: String) throws(AuditEntryError) -> JSONValue { try required(object[name], name) }

  func text(_ name: String) throws(AuditEntryError) -> String { try required(object[name]?.text, name) }

  func integer(_ name: String) throws(AuditEntryError) -> Int64 { try required(object[name]?.integer, name) }

  func time(_ name: String) throws(AuditEntryError) -> Timestamp {
    try required(Timestamp(milliseconds: integer(name)), name)
  }

  /// A text as what it stands for.
  func read<Value>(_ name: String, _ make: (String) -> Value?) throws(AuditEntryError) -> Value {
    try required(make(text(name)), name)
  }

  /// The same of a member that may be missing.
  func readIfPresent<Value>(_ name: String, _ make: (String) -> Value?) throws(AuditEntryError) -> Value? {
    object[name] == nil ? nil : try read(name, make)
  }

  func source() throws(AuditEntryError) -> AuditEntry.Source {
    let time = object["record_time"] == nil ? nil : try time("record_time")
    return AuditEntry.Source(RecordOrigin(try topic(), try partition(), try offset("offset")), at: time)
  }

  func topic() throws(AuditEntryError) -> String {
    try read("topic") { 1...249 ~= $0.utf8.count && $0.utf8.allSatisfy(\.isPartOfTopic) ? $0 : nil }
  }

  func partition() throws(AuditEntryError) -> Int32 {
    try required(Int32(exactly: integer("partition")).flatMap { $0 < 0 ? nil : $0 }, "partition")
  }

  func offset(_ name: String) throws(AuditEntryError) -> Int64 {
    let offset = try integer(name)
    return try required(offset < 0 ? nil : offset, name)
  }

  private func required<Value>(_ value: Value?, _ name: String) throws(AuditEntryError) -> Value {
    guard let value else { throw .malformed(name) }
    return value
  }
}

extension AuditEntry.Obligation {
  fileprivate init(_ members: EntryMembers) throws(AuditEntryError) {
    source = try members.source()
    id = try members.read("id") { EventID($0) }
    team = try members.read("team") { TeamID($0) }
    audience = try members.read("audience") { ClientID($0) }
    type = try members.read("type") { 1...64 ~= $0.utf8.count && $0.utf8.allSatisfy(\.isPartOfType) ? $0 : nil }
    occurredAt = try members.time("event_time")
    issuedAt = try members.time("issued_at")
    let accountKey = try members.readIfPresent("account_key") { HashKeyID($0) }
    account = try members.read("account") { AccountHash($0, key: accountKey) }
    jws = try members.readIfPresent("jws_sha256") { SHA256Digest(hex: $0) }
    keyID = try members.readIfPresent("kid") { KeyID($0) }
    signature = try members.read("signature") { Signature(rawValue: $0) }
  }
}

extension AuditEntry.Effect {
  fileprivate init(_ members: EntryMembers) throws(AuditEntryError) {
    let outcome = try members.value("outcome")
    guard let cause = Self.cause(of: outcome) else { throw .malformed("outcome") }
    (source, self.cause, self.outcome) = (try members.source(), cause, outcome.canonicalBytes)
    abridged = try members.readIfPresent("outcome_sha256") { SHA256Digest(hex: $0) }
  }

  /// The event that an outcome names as its cause.
  static func cause(of outcome: JSONValue) -> EventID? { outcome["cause"]?["id"]?.text.flatMap { EventID($0) } }
}

extension AuditEntry.Decision {
  fileprivate init(_ members: EntryMembers) throws(AuditEntryError) {
    source = try members.source()
    time = try members.time("at")
    person = try members.text("by")
    reason = try members.readIfPresent("reason") { $0 }
    kind = try members.read("decision") { Kind(rawValue: $0) }
    letter = try members.readIfPresent("letter") { LetterPlace($0) }
    id = try members.readIfPresent("id") { EventID($0) }
    team = try members.readIfPresent("team") { TeamID($0) }
    audience = try members.readIfPresent("audience") { ClientID($0) }
  }
}

extension AuditEntry.Gap {
  fileprivate init(_ members: EntryMembers) throws(AuditEntryError) {
    (topic, partition) = (try members.topic(), try members.partition())
    (from, to) = (try members.offset("from"), try members.offset("to"))
    cause = try members.read("why") { Cause(rawValue: $0) }
    time = try members.time("at")
  }
}

extension UInt8 {
  fileprivate var isPartOfType: Bool { 0x61...0x7a ~= self || 0x30...0x39 ~= self || self == 0x2d }

  fileprivate var isPartOfTopic: Bool { isPartOfType || 0x41...0x5a ~= self || self == 0x2e || self == 0x5f }
}

extension SHA256Digest {
  /// Nil unless `hex` is 64 hexadecimal digits, the letters small.
  fileprivate init?(hex: String) {
    guard let bytes = AccountHash(hex)?.bytes else { return nil }
    self.init(bytes: bytes)
  }
}
