package import AccountEvents
package import AccountStore
import Kafka

/// A compacted topic on which records wait for a person: letters, and notes of what was decided about them.
package enum LetterTopic: Sendable, Hashable {
  /// What Apple signed and the ingress could not act on.
  case quarantine
  /// What a consumer could not process.
  case deadLetters(of: ConsumerName)

  /// The topic itself.
  package var topic: Topic {
    switch self {
    case .quarantine: .quarantine
    case .deadLetters(let consumer): .deadLetters(of: consumer)
    }
  }

  /// The header that says why a letter is there.
  var causeHeader: String {
    switch self {
    case .quarantine: EventRecord.reasonHeader
    case .deadLetters: DeadLetter.Header.cause
    }
  }

  /// The key that a letter's note gets. A quarantined event of an earlier version has another key or none: several of an
  /// account shared one.
  func key(of letter: ConsumedRecord, _ facts: [String: String]) -> [UInt8] {
    if self == .quarantine, let team = facts["ce_team"], let audience = facts["ce_audience"], let id = facts["ce_id"],
      TeamID(team) != nil, ClientID(audience) != nil, EventID(id) != nil
    {
      return Array("\(team) \(audience) \(id)".utf8)
    }
    return letter.key ?? Array("\(letter.position.partition)/\(letter.position.offset)".utf8)
  }

  /// Whether a header says nothing of a person.
  package static func isImpersonal(_ header: String) -> Bool {
    impersonal.contains(header)
      || header.hasPrefix(DeadLetter.Header.prefix) && header != DeadLetter.Header.key
  }

  private static let impersonal: Set<String> = [
    "ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "ce_team", "ce_audience", "content-type",
    EventRecord.reasonHeader,
  ]
}
