package import AccountEvents
package import EventLoop
package import Kafka

/// Where records go so that everybody downstream can read them: Kafka, or memory in tests.
@Loop
package protocol EventLog: AnyObject, Sendable {
  /// Appends the record; `report` is called once, when every in-sync replica has it or the log has given up, and maybe
  /// before this returns. Records of one key that were given one after the other never change their places.
  ///
  /// Reports `.uncertain` when nobody can know whether it is there: whoever asked must not be told that it is.
  func append(_ record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void)

  /// Appends the record in a request of its own; the same holds for it, but not for the order. A log that refused a record
  /// may have refused the batch that the record was sent in: only what is refused here is at fault itself.
  func append(
    alone record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void)

  /// Appends a record that is no event's, such as a tombstone; the same holds for it.
  func append(_ record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void)

  /// Appends such a record in a request of its own.
  func append(
    alone record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void)

  /// Appends the record of an announcement; the same holds for it. Where headers need no other form, none are made.
  func append(
    _ announcement: Announcement, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void)

  /// Asks whether records could be appended now: whether the log is there, and its topics.
  func check() async throws(EventLogError)

  /// Waits for what is under way, for `patience` at most; what is not acknowledged by then is reported so.
  func close(within patience: Duration) async
}

extension EventLog {
  /// A log without batches refuses nothing for what else is in one.
  package func append(
    alone record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) { append(record, then: report) }

  /// The same.
  package func append(
    alone record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) { append(record, then: report) }

  /// Appends the record, and where it is refused once more, alone: for whoever has one record of a key under
  /// way at a time, because the second time is behind what others have appended meanwhile.
  func append(
    aloneIfRefused record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(record) { [self] result in
      if result.isRefused { append(alone: record, then: report) } else { report(result) }
    }
  }

  /// The same with a record that is no event's.
  func append(
    aloneIfRefused record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(record) { [self] result in
      if result.isRefused { append(alone: record, then: report) } else { report(result) }
    }
  }
}

extension Result<EventLogPosition, EventLogError> {
  fileprivate var isRefused: Bool { if case .failure(let error) = self { error.outcome == .refused } else { false } }
}

/// Where a record stands.
package struct EventLogPosition: Sendable, Hashable {
  /// The partition of its topic.
  package let partition: Int32
  /// The offset in the partition.
  package let offset: Int64

  /// A place in a topic.
  package init(partition: Int32, offset: Int64) { (self.partition, self.offset) = (partition, offset) }
}

/// Why a record could not be appended.
package struct EventLogError: Error, Sendable, Equatable {
  /// What follows for the record.
  package enum Outcome: String, Sendable, CaseIterable {
    /// It is not there; it may be later.
    case unavailable
    /// It may be there or not.
    case uncertain
    /// It is not there and never will be in this form.
    case refused
  }

  /// What follows for the record.
  package let outcome: Outcome
  /// What the log said, from a closed list of its own.
  package let reason: String
  /// The same in words; no personal data.
  package let detail: String

  /// An error with what the log said.
  package init(_ outcome: Outcome, reason: String, detail: String) {
    (self.outcome, self.reason, self.detail) = (outcome, reason, detail)
  }
}

extension EventLogError {
  /// The spool did not take what had to queue in it.
  init(_ error: SpoolError) {
    self.init(.unavailable, reason: "spool-\(error.code.rawValue)", detail: "\(error)")
  }

  /// Neither took the record.
  init(_ error: EventLogError, and spool: SpoolError) {
    self.init(error.outcome, reason: error.reason, detail: "\(error.detail); \(spool)")
  }
}
