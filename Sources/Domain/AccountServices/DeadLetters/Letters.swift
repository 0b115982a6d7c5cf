import AccountEvents
package import AccountStore
package import Kafka

/// What stands on a topic of letters: which of them wait for a person. The others have a note of what was decided.
///
/// A note has its letter's key, so compaction takes away the letter, which names a person, and keeps the note, which does
/// not.
package struct Letters: Sendable {
  /// The records of a key replace each other within their partition.
  fileprivate struct Slot: Hashable {
    let partition: Int32
    let key: [UInt8]
  }

  /// The topic.
  package let topic: LetterTopic
  private var bySlot: [Slot: Letter] = [:]
  /// How many letters of earlier versions share a key.
  private var former: [Slot: Int] = [:]

  /// A topic of which nothing is read yet.
  package init(on topic: LetterTopic) { self.topic = topic }

  /// The letters that wait, oldest first. A record that was put aside several times is there once, as the last.
  package var letters: [Letter] { bySlot.values.sorted { $0.place < $1.place } }

  /// Takes in the topic's next record.
  package mutating func read(_ record: ConsumedRecord) {
    let partition = record.position.partition
    guard record.value != nil else {
      // It takes away everything of its key.
      let gone = bySlot.filter { $0.key.partition == partition && ($0.value.formerKey ?? $0.value.key) == record.key }
      for slot in gone.keys { take(slot) }
      return
    }
    let headers = record.headers
    if headers.contains(where: { $0.name == LetterDecision.Header.handled }) {
      let place = "\(partition)/\(record.position.offset)"
      return take(Slot(partition: partition, key: record.key ?? Array(place.utf8)))
    }
    let letter = Letter(record, headers, on: topic)
    take(letter.slot)
    bySlot[letter.slot] = letter
    if let key = letter.formerKey { former[Slot(partition: partition, key: key), default: 0] += 1 }
  }

  private mutating func take(_ slot: Slot) {
    guard let letter = bySlot.removeValue(forKey: slot), let key = letter.formerKey else { return }
    former[Slot(partition: slot.partition, key: key), default: 1] -= 1
  }

  /// The letters at these places, those of an account in the order in which its records came, with a letter of an account
  /// that would have to come before them; and the places where none waits.
  package func select(
    _ places: Set<LetterPlace>
  ) -> (letters: [Letter], overtaken: Letter?, unknown: Set<LetterPlace>) {
    let chosen = bySlot.values.filter { places.contains($0.place) }.sorted { $0.comesBefore($1) }
    // The last one of each account.
    let last = Dictionary(
      chosen.compactMap { letter in letter.account.map { ($0, letter) } }, uniquingKeysWith: { $1 })
    let overtaken = bySlot.values.filter { letter in
      !places.contains(letter.place) && letter.account.flatMap { last[$0] }.map { letter.comesBefore($0) } ?? false
    }.min { $0.place < $1.place }
    return (chosen, overtaken, places.subtracting(chosen.map(\.place)))
  }

  /// Notes that a letter is decided about, and returns the records that say so on the topic, for its own partition: the
  /// note, which takes the letter's place.
  ///
  /// A letter of an earlier version has a key of another form. Before the note goes a tombstone for that key, unless
  /// another letter with it waits still.
  package mutating func decide(_ letter: Letter, _ decision: LetterDecision) -> [KafkaRecord] {
    take(letter.slot)
    var records: [KafkaRecord] = []
    if let key = letter.formerKey, former[Slot(partition: letter.place.partition, key: key), default: 0] <= 0 {
      records.append(
        KafkaRecord(topic: topic.topic.name, partition: letter.place.partition, key: key, value: nil))
    }
    // Its value is not nothing: that would take away the note, too.
    records.append(
      KafkaRecord(
        topic: topic.topic.name, partition: letter.place.partition, key: letter.key,
        value: Array(decision.handling.rawValue.utf8), headers: decision.headers(about: letter)))
    return records
  }
}

extension Letter {
  fileprivate var slot: Letters.Slot { Letters.Slot(partition: place.partition, key: key) }

  /// The record that gives a dead letter to its consumer again, and to nobody else. `content` is the letter as it stands,
  /// or, of one that only says where the record stands, the record.
  package func retry(_ content: ConsumedRecord, to consumer: ConsumerName) -> KafkaRecord {
    var record = KafkaRecord(giving: content, to: consumer, first: order)
    if isShortened { return record }
    record.key = account
    if self[DeadLetter.Header.noValue] != nil { record.value = nil }
    return record
  }
}

extension KafkaRecord {
  /// A record that gives another to a consumer again, and to nobody else. `first` is where it stood before it was given to
  /// anybody for the first time: if it becomes a dead letter, the order of an account's letters goes by that.
  package init(giving record: ConsumedRecord, to consumer: ConsumerName, first: RecordOrigin?) {
    var headers = record.headers.filter { !$0.name.hasPrefix(DeadLetter.Header.prefix) }
    if let first { headers.append(KafkaHeader(DeadLetter.Header.first, first.description)) }
    self.init(topic: Topic.retries(of: consumer).name, key: record.key, value: record.value, headers: headers)
  }
}
