import AccountEvents
import Cryptography

extension AuditEntry {
  /// The version of the entries' form.
  static let version: Int64 = 1

  /// The entry's bytes, as they stand in the log.
  package var bytes: [UInt8] { json(isPlaced: true) }

  /// The entry's JSON. What is not placed lacks where its record stood and when it was appended: a record that stands
  /// twice on its topic has the same form.
  func json(isPlaced: Bool) -> [UInt8] {
    var object = CanonicalObject()
    switch self {
    case .obligation(let obligation): obligation.write(to: &object)
    case .effect(let effect): effect.write(to: &object, isPlaced)
    case .decision(let decision): decision.write(to: &object, isPlaced)
    case .gap(let gap): gap.write(to: &object)
    }
    return object.finish()
  }
}

// Canonical JSON has its members in the order of their names.

extension AuditEntry.Obligation {
  fileprivate func write(to object: inout CanonicalObject) {
    object.add("account", hex: account.bytes)
    object.add("account_key", account.key?.description)
    object.add("audience", audience.text)
    object.add("event_time", occurredAt)
    object.add("id", id.text)
    object.add("issued_at", issuedAt)
    object.add("jws_sha256", hex: jws?.bytes)
    object.add("kid", keyID?.text)
    object.add("kind", "obligation")
    object.add("offset", source.origin.offset)
    object.add("partition", Int64(source.origin.partition))
    object.add("record_time", source.time)
    object.add("signature", signature.rawValue)
    object.add("team", team.text)
    object.add("topic", source.origin.topic)
    object.add("type", type)
    object.add("v", AuditEntry.version)
  }
}

extension AuditEntry.Effect {
  fileprivate func write(to object: inout CanonicalObject, _ isPlaced: Bool) {
    object.add("kind", "effect")
    if isPlaced { object.add("offset", source.origin.offset) }
    object.add("outcome", canonical: outcome)
    object.add("outcome_sha256", hex: abridged?.bytes)
    if isPlaced {
      object.add("partition", Int64(source.origin.partition))
      object.add("record_time", source.time)
    }
    object.add("topic", source.origin.topic)
    object.add("v", AuditEntry.version)
  }
}

extension AuditEntry.Decision {
  fileprivate func write(to object: inout CanonicalObject, _ isPlaced: Bool) {
    object.add("at", time)
    object.add("audience", audience?.text)
    object.add("by", person)
    object.add("decision", kind.rawValue)
    object.add("id", id?.text)
    object.add("kind", "decision")
    object.add("letter", letter?.description)
    if isPlaced {
      object.add("offset", source.origin.offset)
      object.add("partition", Int64(source.origin.partition))
    }
    object.add("reason", reason)
    if isPlaced { object.add("record_time", source.time) }
    object.add("team", team?.text)
    object.add("topic", source.origin.topic)
    object.add("v", AuditEntry.version)
  }
}

extension AuditEntry.Gap {
  fileprivate func write(to object: inout CanonicalObject) {
    object.add("at", time)
    object.add("from", from)
    object.add("kind", "gap")
    object.add("partition", Int64(partition))
    object.add("to", to)
    object.add("topic", topic)
    object.add("v", AuditEntry.version)
    object.add("why", cause.rawValue)
  }
}
