package import AccountEvents
package import AccountStore
package import Kafka

/// A record that a consumer could not do anything about, as it is kept for a person to look at.
package struct DeadLetter: Sendable {
  /// The record for the topic of the consumer's dead letters: what was read, with headers that say why it is there.
  package let record: KafkaRecord

  /// What is to be put aside.
  init(
    _ record: ConsumedRecord, consumer: ConsumerName, cause: String, attempts: Int, isGivenUp: Bool, time: Timestamp
  ) {
    let headers =
      record.headers.filter { !$0.name.hasPrefix(Header.prefix) } + [
        KafkaHeader(Header.cause, cause), KafkaHeader(Header.attempts, String(attempts)),
        KafkaHeader(Header.topic, record.topic), KafkaHeader(Header.partition, String(record.position.partition)),
        KafkaHeader(Header.offset, String(record.position.offset)), KafkaHeader(Header.consumer, consumer.text),
        KafkaHeader(Header.time, time.description),
      ] + (isGivenUp ? [KafkaHeader(Header.givenUp, "true")] : [])
    self.record = KafkaRecord(
      topic: Topic.deadLetters(of: consumer).name, key: record.key, value: record.value, headers: headers)
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
    /// Of one that might have succeeded later: it was tried until the topic was about to forget it.
    package static let givenUp = "dead-letter-given-up"
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
