package import AccountEvents
package import AccountStore
package import Kafka

/// What stands on a consumer's topic of dead letters: which of them wait for a person. The others have a note of what was
/// done about them, which stays.
package struct DeadLetters: Sendable {
  /// A letter that waits for a person: what is said of it without what it says.
  package struct Letter: Sendable {
    /// What it is called by.
    package let place: LetterPlace
    /// What it is kept under.
    package let key: [UInt8]
    /// The record's key: the letters of one are of one account.
    package let account: [UInt8]?
    /// What the order within an account goes by.
    let order: RecordOrigin?
    /// Where the record stood.
    package let origin: RecordOrigin?
    /// The headers of ours, and the event's id and type.
    package let facts: [String: String]

    /// Whether the letter is not the record, but only says where it stands.
    package var isShortened: Bool { self[DeadLetter.Header.shortened] != nil }

    /// The text of a header of ours, or of the event's id and type; nil where there is none.
    package subscript(header: String) -> String? { facts[header] }

    fileprivate init(_ record: ConsumedRecord, _ key: [UInt8]) {
      self.key = key
      place = LetterPlace(partition: record.position.partition, offset: record.position.offset)
      account = record.headers.last { $0.name == DeadLetter.Header.key }?.value
      var facts: [String: String] = [:]
      for header in record.headers where Self.isKept(header.name) {
        facts[header.name] = header.value.map { String(decoding: $0, as: UTF8.self) }
      }
      self.facts = facts
      origin = RecordOrigin(String(decoding: key, as: UTF8.self))
      order = RecordOrigin(facts[DeadLetter.Header.first] ?? String(decoding: key, as: UTF8.self))
    }

    private static func isKept(_ name: String) -> Bool {
      name.hasPrefix(DeadLetter.Header.prefix) && name != DeadLetter.Header.key
        || DeadLetter.Header.ofEvent.contains(name)
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
  private var byKey: [[UInt8]: Letter] = [:]

  /// Nobody's letters yet.
  package init(of consumer: ConsumerName) { self.consumer = consumer }

  /// The letters that wait, oldest first. A record that was put aside several times is there once, as the last.
  package var letters: [Letter] { byKey.values.sorted { $0.place < $1.place } }

  /// Takes in the topic's next record.
  package mutating func read(_ record: ConsumedRecord) {
    let key = record.key ?? Array("\(record.position.partition)/\(record.position.offset)".utf8)
    byKey[key] = record.headers.contains { $0.name == Header.handled } ? nil : Letter(record, key)
  }

  /// The letters at these places, those of an account in the order in which its records came, with a letter of an account
  /// that would have to come before them; and the places where none waits.
  package func select(
    _ places: Set<LetterPlace>
  ) -> (letters: [Letter], overtaken: Letter?, unknown: Set<LetterPlace>) {
    let chosen = letters.filter { places.contains($0.place) }.sorted { $0.comesBefore($1) }
    // The last one of each account.
    let last = Dictionary(
      chosen.compactMap { letter in letter.account.map { ($0, letter) } }, uniquingKeysWith: { $1 })
    let overtaken = letters.first { letter in
      !places.contains(letter.place) && letter.account.flatMap { last[$0] }.map { letter.comesBefore($0) } ?? false
    }
    return (chosen, overtaken, places.subtracting(chosen.map(\.place)))
  }

  /// The record that gives a letter to its consumer again, and to nobody else. `content` is the letter as it stands,
  /// or, of one that only says where the record stands, the record.
  package func retry(_ letter: Letter, _ content: ConsumedRecord) -> KafkaRecord {
    var headers = content.headers.filter { !$0.name.hasPrefix(DeadLetter.Header.prefix) }
    if let order = letter.order { headers.append(KafkaHeader(DeadLetter.Header.first, order.description)) }
    let retries = Topic.retries(of: consumer).name
    if letter.isShortened {
      return KafkaRecord(topic: retries, key: content.key, value: content.value, headers: headers)
    }
    let value = letter[DeadLetter.Header.noValue] == nil ? content.value : nil
    return KafkaRecord(topic: retries, key: letter.account, value: value, headers: headers)
  }

  /// The record for the topic of dead letters that says what was done about one, and takes its place.
  package func mark(_ letter: Letter, _ handling: Handling, by person: String, at time: Timestamp) -> KafkaRecord {
    var headers = [KafkaHeader(Header.handled, handling.word), KafkaHeader(Header.place, letter.place.description)]
    if case .discarded(let reason) = handling { headers.append(KafkaHeader(Header.reason, reason)) }
    headers.append(KafkaHeader(Header.person, person))
    headers.append(KafkaHeader(Header.time, time.description))
    // Its value is not nothing: that would take away the note, too.
    return KafkaRecord(
      topic: Topic.deadLetters(of: consumer).name, partition: letter.place.partition, key: letter.key,
      value: Array(handling.word.utf8), headers: headers)
  }

  /// The headers of a record that says what was done about a letter.
  enum Header {
    static let handled = "handled"
    static let place = "handled-letter"
    static let reason = "handled-reason"
    static let person = "handled-by"
    static let time = "handled-time"
  }
}

extension DeadLetters.Letter {
  /// By where their records stood; by their places where that does not tell.
  fileprivate func comesBefore(_ other: Self) -> Bool {
    guard order != other.order else { return place < other.place }
    guard let order else { return true }
    return other.order.map { order < $0 } ?? false
  }
}
