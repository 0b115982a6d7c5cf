import CLibrdkafka
import EventLoop

extension Client {
  /// Reads on from these offsets, once librdkafka has begun to read.
  func seek(to offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError) {
    let handle = handle
    try await onThread { () -> Result<Void, KafkaError> in
      let list = PartitionList(offsets)
      if let error = unsafe rd_kafka_seek_partitions(handle.pointer, list.pointer, max(1, limit.forLibrdkafka)) {
        return .failure(unsafe KafkaError(consuming: error))
      }
      return list.entries.failure().map { .failure(KafkaError($0)) } ?? .success(())
    }
  }

  /// What the client's group has committed.
  func committed(
    _ partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    let handle = handle
    return try await onThread {
      let list = PartitionList(partitions)
      let result = unsafe rd_kafka_committed(handle.pointer, list.pointer, limit.forLibrdkafka)
      if let failure = list.entries.failure(result) { return .failure(KafkaError(unreachable: failure)) }
      return .success(list.entries.offsets)
    }
  }

  /// Asks for the offset of the first record of each partition that was made at a time or later; where there is none,
  /// of the next record.
  func offsets(of topic: String, since time: Int64, within limit: Duration) async throws(KafkaError) -> [Int32: Int64] {
    let end = MonotonicTime.now + limit
    let partitions = try await describe(topic: topic, within: limit).partitions.map(\.number)
    let handle = handle
    let left = end - MonotonicTime.now
    let found = try await onThread { () -> Result<[TopicPartition: Int64], KafkaError> in
      let times = partitions.map { (TopicPartition(topic, $0), time) }
      let list = PartitionList(Dictionary(times) { first, _ in first })
      let result = unsafe rd_kafka_offsets_for_times(handle.pointer, list.pointer, max(1, left.forLibrdkafka))
      if let failure = list.entries.failure(result) { return .failure(KafkaError(unreachable: failure)) }
      return .success(list.entries.offsets)
    }
    // librdkafka says "the end" where there is no such record.
    let silent = partitions.filter { found[TopicPartition(topic, $0)] == nil }
    let ends = try await endOffsets(of: topic, silent, within: end - .now)
    return Dictionary(found.map { ($0.key.partition, $0.value) }) { first, _ in first }.merging(ends) { first, _ in
      first
    }
  }
}

extension Duration {
  /// Milliseconds, as librdkafka takes them.
  var forLibrdkafka: CInt { CInt(clamping: max(0, wholeNanoseconds / 1_000_000)) }
}
