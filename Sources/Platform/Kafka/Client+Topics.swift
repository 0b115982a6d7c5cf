import CLibrdkafka

extension Client {
  /// Makes topics, and returns the names of those that were made.
  func createTopics(_ topics: [NewTopic], within limit: Duration) async throws(KafkaError) -> Set<String> {
    try await administer(RD_KAFKA_ADMIN_OP_CREATETOPICS, changes: true, within: limit) { request throws(KafkaError) in
      let requests = TopicRequests(capacity: topics.count)
      for topic in topics { try requests.add(topic) }
      unsafe rd_kafka_CreateTopics(
        request.client, requests.pointers.baseAddress, requests.count, request.options, request.answers)
    } read: { answer throws(KafkaError) in
      var count = 0
      guard let result = unsafe rd_kafka_event_CreateTopics_result(answer.event),
        let topics = unsafe rd_kafka_CreateTopics_result_topics(result, &count)
      else { throw .foreignAnswer }
      var created: Set<String> = []
      for index in 0..<count {
        let topic = unsafe topics[index]
        let number = unsafe rd_kafka_topic_result_error(topic)
        switch number {
        case RD_KAFKA_RESP_ERR_NO_ERROR: created.insert(unsafe String(cString: rd_kafka_topic_result_name(topic)))
        case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: continue
        default:
          throw KafkaError(
            number, words: unsafe rd_kafka_topic_result_error_string(topic).map { unsafe String(cString: $0) })
        }
      }
      return created
    }
  }

  /// Asks for all settings of a topic, by name, defaults of the cluster among them. Secret ones have no value and are
  /// left out.
  func settings(of topic: String, within limit: Duration) async throws(KafkaError) -> [String: String] {
    try await administer(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, changes: false, within: limit) { request in
      var resource = unsafe rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic)
      unsafe rd_kafka_DescribeConfigs(request.client, &resource, 1, request.options, request.answers)
      unsafe rd_kafka_ConfigResource_destroy(resource)
    } read: { answer throws(KafkaError) in
      var count = 0
      guard let result = unsafe rd_kafka_event_DescribeConfigs_result(answer.event),
        let resources = unsafe rd_kafka_DescribeConfigs_result_resources(result, &count), count == 1
      else { throw .foreignAnswer }
      let number = unsafe rd_kafka_ConfigResource_error(resources[0])
      guard number == RD_KAFKA_RESP_ERR_NO_ERROR else {
        throw KafkaError(
          number, words: unsafe rd_kafka_ConfigResource_error_string(resources[0]).map { unsafe String(cString: $0) })
      }
      let entries = unsafe rd_kafka_ConfigResource_configs(resources[0], &count)
      var settings: [String: String] = [:]
      for index in 0..<count {
        guard let entry = unsafe entries?[index], let name = unsafe rd_kafka_ConfigEntry_name(entry),
          let value = unsafe rd_kafka_ConfigEntry_value(entry)
        else { continue }
        settings[unsafe String(cString: name)] = unsafe String(cString: value)
      }
      return settings
    }
  }

  /// Deletes the records before these offsets, and returns the first offset that each partition still has.
  func deleteRecords(
    before offsets: [TopicPartition: Int64], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    try await administer(RD_KAFKA_ADMIN_OP_DELETERECORDS, changes: true, within: limit) { request in
      let list = PartitionList(offsets)
      var deletion = unsafe rd_kafka_DeleteRecords_new(list.pointer)
      unsafe rd_kafka_DeleteRecords(request.client, &deletion, 1, request.options, request.answers)
      unsafe rd_kafka_DeleteRecords_destroy(deletion)
    } read: { answer throws(KafkaError) in
      guard let result = unsafe rd_kafka_event_DeleteRecords_result(answer.event) else { throw .foreignAnswer }
      let entries = unsafe PartitionList.entries(of: rd_kafka_DeleteRecords_result_offsets(result))
      if let failure = entries.failure() { throw KafkaError(failure) }
      return entries.offsets
    }
  }
}

/// librdkafka's objects for topics to be made.
@safe private final class TopicRequests {
  let pointers: UnsafeMutableBufferPointer<OpaquePointer?>
  private(set) var count = 0

  init(capacity: Int) { unsafe pointers = .allocate(capacity: capacity) }

  deinit {
    unsafe rd_kafka_NewTopic_destroy_array(pointers.baseAddress, count)
    unsafe pointers.deallocate()
  }

  func add(_ topic: NewTopic) throws(KafkaError) {
    var words = [CChar](repeating: 0, count: 512)
    // -1 is the cluster's own replication factor.
    let factor = CInt(clamping: topic.replicationFactor ?? -1)
    guard
      let request = unsafe rd_kafka_NewTopic_new(
        topic.name, CInt(clamping: topic.partitions), factor, &words, words.count)
    else { throw KafkaError(.refused, detail: String(terminated: words)) }
    unsafe pointers[count] = request
    count += 1
    for (name, value) in topic.settings {
      let result = unsafe rd_kafka_NewTopic_set_config(request, name, value)
      if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
    }
  }
}
