import CLibrdkafka
import EventLoop

extension Client {
  /// A time that stands for the first record that a partition still has, as Kafka's protocol counts.
  private static let beginning: Int64 = -2
  /// A time that stands for the place behind the last record.
  private static let end: Int64 = -1

  /// Asks for the offset of the first record that each partition still has.
  func beginningOffsets(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    try await offsets(of: partitions, at: Self.beginning, within: limit)
  }

  /// Asks for the offset that the next record of each partition will have.
  func endOffsets(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    try await offsets(of: partitions, at: Self.end, within: limit)
  }

  /// Asks for the offset of the first record of each partition that was made at a time or later; where there is none,
  /// of the next record.
  func offsets(of topic: String, since time: Int64, within limit: Duration) async throws(KafkaError) -> [Int32: Int64] {
    let end = MonotonicTime.now + limit
    let partitions = try await partitions(of: topic, within: limit)
    let found = try await offsets(of: partitions, at: time, within: end - .now)
    // librdkafka says "the end" where there is no such record.
    let ends = try await endOffsets(of: partitions.subtracting(found.keys), within: end - .now)
    return found.merging(ends) { first, _ in first }.byNumber
  }

  /// Asks which partitions a topic has.
  func partitions(of topic: String, within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> {
    Set(try await describe(topic: topic, within: limit).partitions.map { TopicPartition(topic, $0.number) })
  }

  /// One question to each broker that leads one of the partitions. librdkafka 2.0's `rd_kafka_query_watermark_offsets`
  /// would wait beyond its limit while a broker is away (its issue 4460); this call keeps it.
  private func offsets(
    of partitions: Set<TopicPartition>, at time: Int64, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    if partitions.isEmpty { return [:] }
    let handle = handle
    return try await onThread {
      let list = PartitionList(Dictionary(partitions.map { ($0, time) }) { first, _ in first })
      let result = unsafe rd_kafka_offsets_for_times(handle.pointer, list.pointer, max(1, limit.forLibrdkafka))
      if let failure = list.entries.failure(result) { return .failure(KafkaError(unreachable: failure)) }
      return .success(list.entries.offsets)
    }
  }
}

extension [TopicPartition: Int64] {
  /// The offsets of one topic, by partition.
  var byNumber: [Int32: Int64] {
    [Int32: Int64](map { ($0.key.partition, $0.value) }) { first, _ in first }
  }
}
