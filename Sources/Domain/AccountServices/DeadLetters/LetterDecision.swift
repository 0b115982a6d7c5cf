package import AccountEvents
import Kafka

/// What a person has decided about letters.
package struct LetterDecision: Sendable {
  /// What was done.
  package enum Handling: String, Sendable {
    /// The consumer was given the record again.
    case retried
    /// The event was published.
    case released
    /// Nothing follows from it.
    case discarded
  }

  /// What was done.
  package let handling: Handling
  /// Why. It is kept.
  package let reason: String?
  /// Who decided. It is kept.
  package let person: String
  /// When.
  package let time: Timestamp

  /// A decision from its parts.
  package init(_ handling: Handling, because reason: String?, by person: String, at time: Timestamp) {
    (self.handling, self.reason, self.person, self.time) = (handling, reason, person, time)
  }

  /// The headers of a note of it.
  func headers(about letter: Letter) -> [KafkaHeader] {
    var headers = [
      KafkaHeader(Header.handled, handling.rawValue), KafkaHeader(Header.place, letter.place.description),
    ]
    if let reason { headers.append(KafkaHeader(Header.reason, reason)) }
    return headers + [KafkaHeader(Header.person, person), KafkaHeader(Header.time, time.description)]
  }

  /// The headers of a note.
  enum Header {
    static let handled = "handled"
    static let place = "handled-letter"
    static let reason = "handled-reason"
    static let person = "handled-by"
    static let time = "handled-time"
  }
}

/// What became of a letter that a person decided about.
package enum LetterOutcome: Sendable, Equatable {
  /// It is done, and noted.
  case done
  /// It waits as before; the words say why.
  case left(String)
}
