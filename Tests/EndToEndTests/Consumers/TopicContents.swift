import AccountEvents
import EventLoop
import Kafka

/// What stands on topics by now: read from their beginnings to their ends.
@Loop
enum TopicContents {
  /// The records of the topics, those of a partition in their order.
  static func read(_ topics: [Topic], _ brokers: String) async throws -> [String: [ConsumedRecord]] {
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", brokers)])
    let admin = try Admin(configuration, log: { _ in })
    var left: [TopicPartition: Int64] = [:]
    for topic in topics {
      for (partition, end) in try await admin.endOffsets(of: topic.name, within: .seconds(300)) where end > 0 {
        left[TopicPartition(topic.name, partition)] = end
      }
    }
    await admin.close()
    let consumer = try Consumer(configuration, group: nil, log: { _ in })
    try consumer.assign(
      left.keys.map { PartitionStart(topic: $0.topic, partition: $0.partition, at: .beginning) })
    var records: [String: [ConsumedRecord]] = [:]
    while !left.isEmpty {
      for record in try await consumer.next(upTo: 1000) {
        let place = TopicPartition(record.topic, record.position.partition)
        guard let end = left[place] else { continue }
        records[record.topic, default: []].append(record)
        if record.position.offset + 1 >= end { left[place] = nil }
      }
      try Task.checkCancellation()
    }
    await consumer.close()
    return records
  }
}
