package import AccountEvents
package import AccountStore
import EventLoop
import Kafka

/// A record that follows from what was done about an event: composed from the event and what the ledger says of it alone,
/// so that it is the same whenever it is composed anew.
package struct Announcement: Sendable, Hashable {
  /// Where it belongs.
  package let topic: Topic
  /// The record's key.
  package let key: [UInt8]
  /// The record's value; nil is a tombstone.
  package let value: [UInt8]?
  /// The record's headers.
  package let headers: [EventRecord.Header]

  /// A record to be published once the settlement is in the store.
  package init(topic: Topic, key: [UInt8], value: [UInt8]?, headers: [EventRecord.Header]) {
    (self.topic, self.key, self.value, self.headers) = (topic, key, value, headers)
  }

  /// Whether mail to an account may be sent now.
  package init(_ relay: RelayRecord) {
    let record = EventRecord(relay)
    self.init(topic: record.topic, key: record.key ?? [], value: record.value, headers: record.headers)
  }

  /// A tombstone: whether mail to the account may be sent is not known any more.
  package init(forgettingRelayOf account: Account) {
    self.init(topic: .emailRelay, key: account.key, value: nil, headers: [])
  }

  /// What was done about an event.
  package init(_ outcome: AccountOutcome) {
    let record = EventRecord(outcome)
    self.init(topic: record.topic, key: record.key ?? [], value: record.value, headers: record.headers)
  }

  /// Why a consumer has done nothing about an event that it has settled.
  package init(
    _ reason: AccountOutcome.Reason, of event: AccountEvent, _ account: AccountHash, by consumer: ConsumerName,
    at time: Timestamp
  ) {
    self.init(
      AccountOutcome(
        account: account, name: .noEffect, reason: reason, cause: AccountOutcome.Cause(event),
        consumer: consumer.text, doneAt: time))
  }
}

extension AccountOutcome.Reason {
  /// What has made an event void.
  init(_ supersession: Supersession) {
    switch supersession {
    case .newerEvent: self = .supersededByNewerEvent
    case .newerSignIn: self = .supersededByNewerSignIn
    case .erased: self = .supersededByErasure
    }
  }
}

extension EventLog {
  /// Appends the record of an announcement.
  package func append(
    _ announcement: Announcement, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(
      KafkaRecord(
        topic: announcement.topic.name, key: announcement.key, value: announcement.value,
        headers: announcement.headers.map { KafkaHeader($0.name, $0.value) }), then: report)
  }
}
