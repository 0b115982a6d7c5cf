package import EventLoop
package import Kafka

/// Topics in memory, and how far a group is: what outlives a consumer.
@Loop
package final class MemoryCluster {
  package private(set) var records: [TopicPartition: [ConsumedRecord]] = [:]
  /// How far the group is.
  package var committed: [TopicPartition: Int64] {
    get { commitments.mapValues(\.offset) }
    set { commitments = newValue.mapValues { CommittedOffset($0) } }
  }
  /// The same with what stands beside it.
  package var commitments: [TopicPartition: CommittedOffset] = [:]
  /// The offset that the next record of a partition has, where that is not 0 for want of records.
  private var ends: [TopicPartition: Int64] = [:]
  /// What stands on the topics that something was said on, in the order of the appends.
  package private(set) var appended: [KafkaRecord] = []

  /// Nothing stands there.
  package init() {}

  /// Makes a partition without records, where it is not there.
  package func make(_ partition: TopicPartition) { records[partition, default: []] += [] }

  /// Puts a record behind all others of the partition.
  @discardableResult
  package func append(_ record: KafkaRecord, to partition: Int32, timestamp: Int64? = nil) -> Int64 {
    let place = TopicPartition(record.topic, partition)
    let offset = extent(of: place).end
    ends[place] = offset + 1
    records[place, default: []].append(
      ConsumedRecord(
        topic: record.topic, position: KafkaPosition(partition: partition, offset: offset), key: record.key,
        value: record.value, headers: record.headers, timestamp: timestamp))
    appended.append(record)
    return offset
  }

  /// Deletes the records of a partition before an offset, as retention does.
  package func deleteRecords(of partition: TopicPartition, before offset: Int64) {
    records[partition, default: []].removeAll { $0.position.offset < offset }
    ends[partition] = max(offset, extent(of: partition).end)
  }

  /// Leaves the next offset of a partition to what is never handed over.
  package func skip(_ partition: TopicPartition) { ends[partition] = extent(of: partition).end + 1 }

  /// Loses the records of a partition from an offset on; from 0 on, the topic is made anew.
  package func loseRecords(of partition: TopicPartition, from offset: Int64) {
    records[partition, default: []].removeAll { $0.position.offset >= offset }
    ends[partition] = offset
  }

  /// The records of a partition from a position on, and the position behind them. As librdkafka: what lies outside begins at
  /// the first record there is.
  func read(
    _ partition: TopicPartition, from position: Int64, upTo limit: Int
  ) -> (records: ArraySlice<ConsumedRecord>, next: Int64) {
    let extent = extent(of: partition)
    let place = (extent.first...extent.end).contains(position) ? position : extent.first
    let some = (records[partition] ?? []).drop { $0.position.offset < place }.prefix(limit)
    return (some, some.last.map { $0.position.offset + 1 } ?? place)
  }

  /// Which offsets a partition holds, and the first record newer than each of the times.
  package func extent(of partition: TopicPartition, newerThan times: Set<Int64> = []) -> PartitionExtent {
    let some = records[partition] ?? []
    let end = ends[partition] ?? 0
    var newer: [Int64: Int64] = [:]
    for time in times { newer[time] = some.first { ($0.timestamp ?? .min) > time }?.position.offset }
    return PartitionExtent(first: some.first?.position.offset ?? end, end: end, firstNewer: newer)
  }

  /// What stands on a topic.
  package func appended(on topic: String) -> [KafkaRecord] { appended.filter { $0.topic == topic } }
}
