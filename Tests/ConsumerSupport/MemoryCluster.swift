package import EventLoop
package import Kafka

/// Topics in memory, and how far a group is: what outlives a consumer.
@Loop
package final class MemoryCluster {
  package private(set) var records: [TopicPartition: [ConsumedRecord]] = [:]
  package var committed: [TopicPartition: Int64] = [:]
  /// What stands on the topics that something was said on, in the order of the appends.
  package private(set) var appended: [KafkaRecord] = []

  /// Nothing stands there.
  package init() {}

  /// Puts a record behind all others of the partition.
  @discardableResult
  package func append(_ record: KafkaRecord, to partition: Int32, timestamp: Int64? = nil) -> Int64 {
    let place = TopicPartition(record.topic, partition)
    let offset = Int64(records[place, default: []].count)
    records[place, default: []].append(
      ConsumedRecord(
        topic: record.topic, position: KafkaPosition(partition: partition, offset: offset), key: record.key,
        value: record.value, headers: record.headers, timestamp: timestamp))
    appended.append(record)
    return offset
  }

  /// What stands on a topic.
  package func appended(on topic: String) -> [KafkaRecord] { appended.filter { $0.topic == topic } }
}
