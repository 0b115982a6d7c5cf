package import AccountEvents
package import AccountStore
package import Kafka

/// A record that a consumer could not do anything about, as it is kept for a person to look at.
///
/// Its key on the topic is where the record stood and the event's id, and that of the note of what was done about it, too:
/// the topic is compacted, so the note takes away what the letter says of a person. Where the record's topic was made
/// anew, another record stands at the same place: its letter has a key of its own.
package struct DeadLetter: Sendable {
  /// The record for the topic of the consumer's dead letters: what was read, with headers that say why it is there.
  package let record: KafkaRecord
  /// What is kept instead where the topic never takes that, for its size mostly: where the record stands.
  package let shortened: KafkaRecord

  private static let longestHeader = 1024

  /// What is to be put aside.
  init(
    _ record: ConsumedRecord, consumer: ConsumerName, cause: String, attempts: Int, isBelieved: Bool, isGivenUp: Bool,
    time: Timestamp
  ) {
    let origin = RecordOrigin(record)
    var facts = [
      KafkaHeader(Header.cause, cause), KafkaHeader(Header.attempts, String(attempts)),
      KafkaHeader(Header.topic, origin.topic), KafkaHeader(Header.partition, String(origin.partition)),
      KafkaHeader(Header.offset, String(origin.offset)), KafkaHeader(Header.consumer, consumer.text),
      KafkaHeader(Header.time, time.description),
    ]
    if isBelieved { facts.append(KafkaHeader(Header.believed, "true")) }
    if isGivenUp { facts.append(KafkaHeader(Header.givenUp, "true")) }
    if let key = record.key { facts.append(KafkaHeader(Header.key, key)) }
    // A record without a value would take away the letter, instead of being it.
    if record.value == nil { facts.append(KafkaHeader(Header.noValue, "true")) }
    facts += record.headers.filter { $0.name == Header.first }
    let (topic, key) = (Topic.deadLetters(of: consumer).name, Array("\(origin)/\(Self.name(of: record))".utf8))
    let own = record.headers.filter { !$0.name.hasPrefix(Header.prefix) }
    self.record = KafkaRecord(topic: topic, key: key, value: record.value ?? [], headers: own + facts)
    let known = own.filter { Header.ofEvent.contains($0.name) } + facts
    shortened = KafkaRecord(
      topic: topic, key: key, value: [],
      headers: known.filter { $0.value?.count ?? 0 <= Self.longestHeader } + [KafkaHeader(Header.shortened, "true")])
  }

  /// What tells the record from others that stood at its place: its event's id, or when it was appended, where it has no
  /// usable one.
  private static func name(of record: ConsumedRecord) -> String {
    let id = record.headers.last { $0.name == "ce_id" }?.value.flatMap { EventID(String(decoding: $0, as: UTF8.self)) }
    return id?.text ?? record.timestamp.map { "\($0)" } ?? "-"
  }

  /// The headers that a dead letter has beside those of the record.
  package enum Header {
    static let prefix = "dead-letter-"
    /// Why it is there.
    package static let cause = "dead-letter-cause"
    /// How many attempts there were.
    package static let attempts = "dead-letter-attempts"
    /// Where the record stood.
    package static let topic = "dead-letter-topic"
    /// Where the record stood.
    package static let partition = "dead-letter-partition"
    /// Where the record stood.
    package static let offset = "dead-letter-offset"
    /// Who put it there.
    package static let consumer = "dead-letter-consumer"
    /// When.
    package static let time = "dead-letter-time"
    /// Of a record that has proven what it says, or does not have to.
    package static let believed = "dead-letter-believed"
    /// Of one that might have succeeded later: it was tried until the topic was about to forget it.
    package static let givenUp = "dead-letter-given-up"
    /// The record's key.
    package static let key = "dead-letter-key"
    /// Of a record that had no value.
    package static let noValue = "dead-letter-no-value"
    /// Of a letter that is not the record, which its topic never takes, but only says where the record stands.
    package static let shortened = "dead-letter-truncated"
    /// What the ingress says of the event.
    static let ofEvent: Set<String> = ["ce_id", "ce_type"]
    /// Of a record that was retried, and of a letter of it: where it stood when it was put aside for the first time.
    package static let first = "dead-letter-first"
  }
}

extension Topic {
  /// What a consumer could not process, until a person decides.
  package static func deadLetters(of consumer: ConsumerName) -> Topic {
    Topic(name: "apple.account-events.\(consumer).dead-letters.v1")
  }

  /// Dead letters of a consumer that it is to try again: read by it alone, beside the account events.
  package static func retries(of consumer: ConsumerName) -> Topic {
    Topic(name: "apple.account-events.\(consumer).retry.v1")
  }
}
