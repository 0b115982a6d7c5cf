import CLibrdkafka
import EventLoop

extension Client {
  /// Makes topics. librdkafka answers on a queue that is waited for on a thread: this happens once in a while.
  func createTopics(_ topics: [NewTopic], within limit: Duration) async throws(KafkaError) -> Set<String> {
    let handle = handle
    // librdkafka takes up to an hour.
    let milliseconds = CInt(clamping: min(limit.wholeNanoseconds / 1_000_000, 3_600_000))
    return try await onThread {
      Result { () throws(KafkaError) in try Self.create(topics, handle, milliseconds) }
    }
  }

  private static func create(
    _ topics: [NewTopic], _ client: Handle, _ milliseconds: CInt
  ) throws(KafkaError) -> Set<String> {
    let requests = TopicRequests(capacity: topics.count)
    for topic in topics { try requests.add(topic) }
    let options = unsafe rd_kafka_AdminOptions_new(client.pointer, RD_KAFKA_ADMIN_OP_CREATETOPICS)
    let answers = unsafe rd_kafka_queue_new(client.pointer)
    defer {
      unsafe rd_kafka_queue_destroy(answers)
      unsafe rd_kafka_AdminOptions_destroy(options)
    }
    // How long to wait for the broker, and how long the broker may wait until the other brokers know the topics.
    var words = [CChar](repeating: 0, count: 512)
    let isAccepted =
      unsafe rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, &words, words.count)
      == RD_KAFKA_RESP_ERR_NO_ERROR
      && rd_kafka_AdminOptions_set_operation_timeout(options, milliseconds, &words, words.count)
        == RD_KAFKA_RESP_ERR_NO_ERROR
    guard isAccepted else { throw KafkaError(.refused, detail: String(terminated: words)) }
    unsafe rd_kafka_CreateTopics(client.pointer, requests.pointers.baseAddress, requests.count, options, answers)
    // librdkafka keeps the time, so an answer always comes.
    guard let event = unsafe rd_kafka_queue_poll(answers, -1) else {
      throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT)
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    let failure = unsafe rd_kafka_event_error(event)
    guard failure == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw KafkaError(failure, words: unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) })
    }
    return try unsafe created(event)
  }

  /// Reads the answer: the names of the topics that were made.
  private static func created(_ event: OpaquePointer) throws(KafkaError) -> Set<String> {
    var count = 0
    guard let answer = unsafe rd_kafka_event_CreateTopics_result(event),
      let topics = unsafe rd_kafka_CreateTopics_result_topics(answer, &count)
    else { throw KafkaError(.other, detail: "an answer to another question") }
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
