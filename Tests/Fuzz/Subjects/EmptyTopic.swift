import AccountServices
import EventLoop
import Kafka

/// A topic of one partition on which nothing ever happens.
@Loop
final class EmptyTopic: PartitionSource {
  func partitions(of topic: String, within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> {
    [TopicPartition(topic, 0)]
  }

  func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent] {
    partitions.mapValues { _ in PartitionExtent(first: 0, end: 0, firstNewer: [:]) }
  }

  func assign(_ partitions: [PartitionStart]) throws(KafkaError) {}

  func next(upTo limit: Int, until time: MonotonicTime) async throws(KafkaError) -> [ConsumedRecord] {
    do { try await Loop.sleep(for: max(time - .now, .zero)) } catch { return [] }  // it is not wanted any more
    return []
  }

  func knownEnd(of partition: TopicPartition) -> Int64? { 0 }

  func close() async {}
}
