package import EventLoop
package import Kafka

/// Where the records of whole topics come from, for a reader that is in no group: Kafka, or memory in tests.
@Loop
package protocol PartitionSource: AnyObject, Sendable {
  /// Asks which partitions a topic has. Throws `unknownTopic` where there is no such topic.
  func partitions(of topic: String, within limit: Duration) async throws(KafkaError) -> Set<TopicPartition>

  /// Asks which offsets partitions hold, and for each of their times which record is the first that is newer. Says
  /// nothing of partitions that cannot be asked about now.
  func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent]

  /// Reads these partitions from now on, and no others.
  func assign(_ partitions: [PartitionStart]) throws(KafkaError)

  /// The next records, those of a partition in their order; none at `time`, or once it is closed or the task is cancelled.
  func next(upTo limit: Int, until time: MonotonicTime) async throws(KafkaError) -> [ConsumedRecord]

  /// The offset behind a partition's last record, as far as is known.
  func knownEnd(of partition: TopicPartition) -> Int64?

  /// Ends it.
  func close() async
}

extension Consumer: PartitionSource {}
