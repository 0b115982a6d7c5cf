package import AccountEvents
package import AccountStore
package import Kafka

/// What stands on a consumer's topic of dead letters: which of them wait for a person, and records of what was done about
/// the others. A topic forgets nothing of it.
package struct DeadLetters: Sendable {
  /// A letter that waits for a person.
  package struct Letter: Sendable {
    /// What it is called by.
    package let place: LetterPlace
    /// The record on the topic of dead letters.
    package let record: ConsumedRecord

    /// The text of a header; nil where there is none.
    package subscript(header: String) -> String? {
      record.headers.last { $0.name == header }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// What was done about a letter.
  package enum Handling: Sendable, Equatable {
    /// The consumer was given it again.
    case retried
    /// Somebody has decided that nothing follows from it.
    case discarded(reason: String)

    var word: String { if case .retried = self { "retried" } else { "discarded" } }
  }

  /// The consumer whose letters they are.
  package let consumer: ConsumerName
  /// The letters that wait, oldest first. A record that was put aside several times is there once.
  package private(set) var letters: [Letter] = []

  /// Nobody's letters yet.
  package init(of consumer: ConsumerName) { self.consumer = consumer }

  /// Takes in the topic's next record.
  package mutating func read(_ record: ConsumedRecord) {
    let letter = Letter(
      place: LetterPlace(partition: record.position.partition, offset: record.position.offset), record: record)
    let origin = Self.origin(of: letter)
    let isKnown = letters.contains { Self.origin(of: $0) == origin }
    if letter[Header.handled] != nil {
      letters.removeAll { Self.origin(of: $0) == origin }
    } else if !isKnown {
      letters.append(letter)
    }
  }

  /// The letters at these places, oldest first, with a letter of the same account that would have to come before them;
  /// and the places where none waits.
  package func select(
    _ places: Set<LetterPlace>
  ) -> (letters: [Letter], overtaken: Letter?, unknown: Set<LetterPlace>) {
    let chosen = letters.filter { places.contains($0.place) }
    let overtaken = letters.first { letter in
      !places.contains(letter.place) && letter.record.key != nil
        && chosen.contains { $0.record.key == letter.record.key && $0.place > letter.place }
    }
    return (chosen, overtaken, places.subtracting(chosen.map(\.place)))
  }

  /// The record that gives a letter to its consumer again, and to nobody else.
  package func retry(_ letter: Letter) -> KafkaRecord {
    KafkaRecord(
      topic: Topic.retries(of: consumer).name, key: letter.record.key, value: letter.record.value,
      headers: letter.record.headers.filter { !$0.name.hasPrefix(DeadLetter.Header.prefix) })
  }

  /// The record for the topic of dead letters that says what was done about one.
  package func mark(_ letter: Letter, _ handling: Handling, by person: String, at time: Timestamp) -> KafkaRecord {
    let origin = [DeadLetter.Header.topic, DeadLetter.Header.partition, DeadLetter.Header.offset]
    var headers = letter.record.headers.filter { origin.contains($0.name) }
    headers.append(KafkaHeader(Header.handled, handling.word))
    headers.append(KafkaHeader(Header.place, letter.place.description))
    if case .discarded(let reason) = handling { headers.append(KafkaHeader(Header.reason, reason)) }
    headers.append(KafkaHeader(Header.person, person))
    headers.append(KafkaHeader(Header.time, time.description))
    return KafkaRecord(
      topic: Topic.deadLetters(of: consumer).name, partition: letter.place.partition, key: nil, value: nil,
      headers: headers)
  }

  /// The headers of a record that says what was done about a letter.
  enum Header {
    static let handled = "handled"
    static let place = "handled-letter"
    static let reason = "handled-reason"
    static let person = "handled-by"
    static let time = "handled-time"
  }

  /// What a letter is about: where its record stood; where that is not said, the letter itself.
  private static func origin(of letter: Letter) -> String {
    let parts = [DeadLetter.Header.topic, DeadLetter.Header.partition, DeadLetter.Header.offset].compactMap {
      letter[$0]
    }
    return parts.count == 3 ? parts.joined(separator: "/") : letter.place.description
  }
}
