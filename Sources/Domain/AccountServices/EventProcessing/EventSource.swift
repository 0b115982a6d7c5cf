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
  func commit(_ offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError)

  /// Lets the partitions go that were revoked, after committing these offsets of theirs, within `limit`.
  func release(committing offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError)

  /// Reads on from these offsets. What was read already and not asked for yet does not come.
  func seek(to offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError)

  /// Asks what the group has committed; nothing for a partition of which nothing was.
  func commitments(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset]

  /// Asks which offsets partitions hold, and for each of their times which record is the first that is newer. Says
  /// nothing of partitions that cannot be asked about now.
  func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent]

  /// Asks whether the topics are there and may be read; throws what keeps them from it. Returns their partitions that have
  /// no leader.
  func checkTopics(within limit: Duration) async throws(KafkaError) -> Set<TopicPartition>

  /// Whether the group has given us our share of the partitions, which may be none.
  var isMember: Bool { get }

  /// The offset behind a partition's last record, as far as is known.
  func knownEnd(of partition: TopicPartition) -> Int64?

  /// Leaves, and ends. Nothing is committed.
  func close() async
}

extension Consumer: EventSource {}
