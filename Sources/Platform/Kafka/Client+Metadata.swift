import CLibrdkafka
import EventLoop

extension Client {
  /// Asks the cluster for a topic. The call blocks in librdkafka, so it has a thread.
  func describe(topic: String, within limit: Duration) async throws(KafkaError) -> TopicDescription {
    let handle = handle
    let milliseconds = CInt(clamping: limit.wholeNanoseconds / 1_000_000)
    return try await onThread {
      guard let reference = unsafe rd_kafka_topic_new(handle.pointer, topic, nil) else {
        return .failure(KafkaError(rd_kafka_last_error()))
      }
      defer { unsafe rd_kafka_topic_destroy(reference) }
      var metadata: UnsafePointer<rd_kafka_metadata>?
      let number = unsafe rd_kafka_metadata(handle.pointer, 0, reference, &metadata, milliseconds)
      guard number == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = unsafe metadata else {
        return .failure(KafkaError(unreachable: number))
      }
      defer { unsafe rd_kafka_metadata_destroy(metadata) }
      return unsafe TopicDescription.read(metadata)
    }
  }

  /// Asks for the offset that the next record of each partition will have.
  func endOffsets(
    of topic: String, _ partitions: [Int32], within limit: Duration
  ) async throws(KafkaError) -> [Int32: Int64] {
    let handle = handle
    let milliseconds = CInt(clamping: limit.wholeNanoseconds / 1_000_000)
    return try await onThread {
      var ends: [Int32: Int64] = [:]
      for partition in partitions {
        var (first, next) = (Int64(0), Int64(0))
        let number = unsafe rd_kafka_query_watermark_offsets(
          handle.pointer, topic, partition, &first, &next, milliseconds)
        guard number == RD_KAFKA_RESP_ERR_NO_ERROR else { return .failure(KafkaError(unreachable: number)) }
        ends[partition] = next
      }
      return .success(ends)
    }
  }
}

extension TopicDescription {
  /// Reads the answer to a question for one topic.
  fileprivate static func read(_ metadata: UnsafePointer<rd_kafka_metadata>) -> Result<Self, KafkaError> {
    guard unsafe metadata.pointee.topic_cnt == 1, let topic = unsafe metadata.pointee.topics?.pointee else {
      return .failure(KafkaError(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC))
    }
    guard unsafe topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return .failure(KafkaError(unsafe topic.err)) }
    let partitions = unsafe UnsafeBufferPointer(start: topic.partitions, count: Int(topic.partition_cnt))
    return .success(
      TopicDescription(
        name: unsafe String(cString: topic.topic),
        partitions: unsafe partitions.map { partition in
          unsafe Partition(
            number: partition.id, leader: partition.leader < 0 ? nil : partition.leader,
            replicas: Int(partition.replica_cnt), inSyncReplicas: Int(partition.isr_cnt))
        }.sorted { $0.number < $1.number }))
  }
}

extension KafkaError {
  /// A question that changes nothing was not answered in time: nothing is uncertain about that.
  fileprivate init(unreachable number: rd_kafka_resp_err_t) {
    let plain = KafkaError(number)
    self.init(
      plain.code == .timedOut ? .brokerUnavailable : plain.code, plain.isUncertain ? .retriable : plain.consequence,
      detail: plain.detail)
  }
}
