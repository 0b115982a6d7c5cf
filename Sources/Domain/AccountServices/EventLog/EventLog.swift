package import AccountEvents
package import EventLoop

/// Where records go so that everybody downstream can read them: Kafka, or memory in tests.
@Loop
package protocol EventLog: AnyObject, Sendable {
  /// Appends the record and returns once every in-sync replica has it.
  ///
  /// Throws `.uncertain` when nobody can know whether it is there: whoever asked must not be told that it is.
  func append(_ record: EventRecord) async throws(EventLogError) -> EventLogPosition

  /// Asks whether records could be appended now: whether the log is there, and its topics.
  func check() async throws(EventLogError)

  /// Waits for what is in flight, for `patience` at most, and says how many records were not acknowledged.
  func close(within patience: Duration) async -> Int
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
