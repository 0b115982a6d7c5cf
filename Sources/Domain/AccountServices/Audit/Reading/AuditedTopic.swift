package import AccountEvents
import AccountStore

/// A topic whose records the audit log takes in.
package enum AuditedTopic: Sendable, Hashable {
  /// Account events, which are obligations.
  case events
  /// Outcomes, which are effects.
  case outcomes
  /// Letters, on which decisions are noted.
  case letters(LetterTopic)

  /// All of them: the letters of the consumers that are programs of the house among them.
  package static let all: [AuditedTopic] =
    [.events, .outcomes, .letters(.quarantine)] + TopicPlan.consumers.map { .letters(.deadLetters(of: $0)) }

  /// The topic.
  package var topic: Topic {
    switch self {
    case .events: .accountEvents
    case .outcomes: .outcomes
    case .letters(let letters): letters.topic
    }
  }

  /// Whether records of a key replace each other: then a hole between two records is nothing that was lost.
  package var isCompacted: Bool {
    switch self {
    case .events, .outcomes: false
    case .letters: true
    }
  }

  /// The topic of that name.
  static func named(_ name: String) -> AuditedTopic? { all.first { $0.topic.name == name } }
}
