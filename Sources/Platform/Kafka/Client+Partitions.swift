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
}

extension Duration {
  /// Milliseconds, as librdkafka takes them.
  var forLibrdkafka: CInt { CInt(clamping: max(0, wholeNanoseconds / 1_000_000)) }
}
