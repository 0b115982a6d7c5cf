package import AccountEvents
package import Kafka

/// A topic of which records can be replayed: what happened, what was done about it, and what is true of mail.
package enum ReplayedTopic: String, Sendable, CaseIterable {
  /// The account events.
  case events
  /// What was done about them.
  case outcomes
  /// Whether mail may be sent.
  case emailRelay = "email-relay"

  /// The topic itself.
  package var topic: Topic {
    switch self {
    case .events: .accountEvents
    case .outcomes: .outcomes
    case .emailRelay: .emailRelay
    }
  }

  /// Nil unless it is the topic of that name.
  package init?(named name: String) {
    guard let found = Self.allCases.first(where: { $0.topic.name == name }) else { return nil }
    self = found
  }

  /// What headers say of a record of the topic, none of which is personal data.
  package func facts(of record: ConsumedRecord) -> RecordFacts {
    RecordFacts(reading: record.headers, addsToEventID: self != .events)
  }
}

/// What the headers of a record say, without personal data: what is malformed, or of somebody else's form, is missing.
package struct RecordFacts: Sendable, Hashable {
  /// The type in our words: `account-delete`.
  package private(set) var type: String?
  /// The event that it is, or that it followed from.
  package private(set) var event: EventID?
  /// The team.
  package private(set) var team: TeamID?
  /// The app that Apple addressed.
  package private(set) var audience: ClientID?
  /// The program of ours that said it.
  package private(set) var source: String?

  private static let typePrefix = "com.apple.siwa."
  private static let typeSuffix = ".v1"
  private static let sourcePrefix = "urn:siwa:"

  fileprivate init(reading headers: [KafkaHeader], addsToEventID: Bool) {
    var id: Substring?
    for header in headers {
      guard let value = header.value, value.count <= 512 else { continue }
      let text = String(decoding: value, as: UTF8.self)
      switch header.name {
      case "ce_type": type = Self.word(in: text, after: Self.typePrefix, before: Self.typeSuffix)
      case "ce_source": source = Self.word(in: text, after: Self.sourcePrefix, before: "")
      case "ce_team": team = TeamID(text)
      case "ce_audience": audience = ClientID(text)
      case "ce_id": id = text[...]
      default: break
      }
    }
    // What followed from an event adds its own name behind a dot, which has none; that nothing did, the consumer's, too.
    if addsToEventID { id = id.map(Self.withoutLastWord) }
    if addsToEventID, type == AccountOutcome.Name.noEffect.rawValue { id = id.map(Self.withoutLastWord) }
    event = id.flatMap { EventID(String($0)) }
  }

  private static func withoutLastWord(_ id: Substring) -> Substring { id[..<(id.lastIndex(of: ".") ?? id.endIndex)] }

  /// What stands between the two, where it is a word of small letters and hyphens.
  private static func word(in text: String, after prefix: String, before suffix: String) -> String? {
    guard text.hasPrefix(prefix), text.hasSuffix(suffix), text.utf8.count > prefix.utf8.count + suffix.utf8.count else {
      return nil
    }
    let word = text.dropFirst(prefix.count).dropLast(suffix.count)
    return word.utf8.allSatisfy { 0x61...0x7a ~= $0 || $0 == 0x2d } ? String(word) : nil
  }
}
