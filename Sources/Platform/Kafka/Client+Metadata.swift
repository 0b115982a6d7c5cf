import CLibrdkafka
import EventLoop

extension Client {
  /// Asks the cluster for a topic. The call blocks in librdkafka, so it has a thread.
  func describe(topic: String, within limit: Duration) async throws(KafkaError) -> TopicDescription {
    let handle = handle
    let milliseconds = limit.forLibrdkafka
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
      guard unsafe metadata.pointee.topic_cnt == 1, let topic = unsafe metadata.pointee.topics?.pointee else {
        return .failure(KafkaError(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC))
      }
      return unsafe TopicDescription.read(topic)
    }
  }

  /// Asks the cluster for all topics, without those that it cannot describe now.
  func describeTopics(within limit: Duration) async throws(KafkaError) -> [TopicDescription] {
    let handle = handle
    return try await onThread {
      var metadata: UnsafePointer<rd_kafka_metadata>?
      let number = unsafe rd_kafka_metadata(handle.pointer, 1, nil, &metadata, limit.forLibrdkafka)
      guard number == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = unsafe metadata else {
        return .failure(KafkaError(unreachable: number))
      }
      defer { unsafe rd_kafka_metadata_destroy(metadata) }
      let topics = unsafe UnsafeBufferPointer(start: metadata.pointee.topics, count: Int(metadata.pointee.topic_cnt))
      return .success(
        unsafe topics.compactMap { topic in
          guard case .success(let description) = unsafe TopicDescription.read(topic) else { return nil }
          return description
        }.sorted { $0.name < $1.name })
    }
  }
}

extension TopicDescription {
  fileprivate static func read(_ topic: rd_kafka_metadata_topic) -> Result<Self, KafkaError> {
    guard unsafe topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
      let error = KafkaError(unsafe topic.err)
      let name = unsafe String(cString: topic.topic)
      return .failure(KafkaError(error.code, error.consequence, detail: "\(name): \(error.detail)"))
    }
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
  /// What the number means for a question.
  init(unreachable number: rd_kafka_resp_err_t) { self = KafkaError(number).ofQuestion }

  /// A question that changes nothing was not answered in time: nothing is uncertain about that.
  var ofQuestion: KafkaError {
    KafkaError(code == .timedOut ? .brokerUnavailable : code, isUncertain ? .retriable : consequence, detail: detail)
  }
}
