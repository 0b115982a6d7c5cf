package import AccountEvents
import Cryptography

/// The key of an entry: a record that stands twice on its topic, and a second notification of one event, has the same.
package struct EntryKey: Sendable, Hashable {
  /// Stands for the event that the entry is about: all entries of an event have the same. An entry without an event has
  /// one of its own.
  package let event: Int64
  /// The first 16 bytes of a SHA-256. Of an obligation: of its team, audience and id; of all others: of the entry without
  /// the place and the time of its record.
  package let identity: [UInt8]

  /// The key of an entry.
  package init(_ entry: AuditEntry) {
    let subject: [UInt8]
    switch entry {
    case .obligation(let it): subject = Array("obligation \(it.team.text) \(it.audience.text) \(it.id.text)".utf8)
    case .effect, .decision, .gap: subject = entry.json(isPlaced: false)
    }
    identity = Array(SHA256.digest(of: subject).bytes.prefix(16))
    event = entry.event.map { Self.event($0) } ?? Self.number(identity)
  }

  /// What stands for an event. Two events can have the same: who asks for the entries of one looks at what they say.
  package static func event(_ id: EventID) -> Int64 { number(SHA256.digest(of: Array(id.text.utf8)).bytes) }

  private static func number(_ bytes: [UInt8]) -> Int64 {
    Int64(bitPattern: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension AuditEntry {
  /// The event that the entry is about; nil where it is about none.
  package var event: EventID? {
    switch self {
    case .obligation(let obligation): obligation.id
    case .effect(let effect): effect.cause
    case .decision(let decision): decision.id
    case .gap: nil
    }
  }
}
