package import EventLoop
package import Kafka

/// Where a consumer's records come from: a group on Kafka, or memory in tests.
///
/// Partitions come, go and are lost as `GroupEvent` says. A partition that was revoked goes with `release`.
@Loop
package protocol EventSource: AnyObject, Sendable {
  /// What happens next; nil once it is closed or the task is cancelled.
  func nextEvent(upTo limit: Int) async throws(KafkaError) -> GroupEvent?

  /// Brings no further records of these partitions until `resume`.
  func pause(_ partitions: Set<TopicPartition>) throws(KafkaError)

  /// Goes on where `pause` stopped.
  func resume(_ partitions: Set<TopicPartition>) throws(KafkaError)

  /// Remembers for the group where each partition is to be read on. Throws when `limit` is over.
  func commit(_ offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError)

  /// Lets the partitions go that were revoked, after committing these offsets of theirs, within `limit`.
  func release(committing offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError)

  /// The offset behind a partition's last record, as far as is known.
  func knownEnd(of partition: TopicPartition) -> Int64?

  /// Leaves, and ends. Nothing is committed.
  func close() async
}

extension Consumer: EventSource {}
