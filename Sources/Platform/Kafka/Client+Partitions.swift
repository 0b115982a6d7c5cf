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
}

extension Duration {
  /// Milliseconds, as librdkafka takes them.
  var forLibrdkafka: CInt { CInt(clamping: max(0, wholeNanoseconds / 1_000_000)) }
}
