import CLibrdkafka
import EventLoop

/// A request of librdkafka's admin interface while it is made: where its answer goes, and how long it may take.
@safe struct AdminRequest {
  let client: OpaquePointer
  let options: OpaquePointer?
  let answers: OpaquePointer?
}

/// The answer to such a request; librdkafka frees it when it has been read.
@safe struct AdminAnswer {
  let event: OpaquePointer
}

extension Client {
  /// Puts a request to the cluster and reads the answer. librdkafka answers on a queue that is waited for on a thread:
  /// this happens once in a while.
  ///
  /// `ask` hands librdkafka's objects over, which copies them. Where the request does not change anything, nothing is
  /// uncertain when no answer comes.
  func administer<Answer: Sendable>(
    _ operation: rd_kafka_admin_op_t, changes: Bool, within limit: Duration,
    ask: @escaping @Sendable (AdminRequest) throws(KafkaError) -> Void,
    read: @escaping @Sendable (AdminAnswer) throws(KafkaError) -> Answer
  ) async throws(KafkaError) -> Answer {
    let handle = handle
    return try await onThread {
      Result { () throws(KafkaError) in
        do throws(KafkaError) {
          return try Self.administer(operation, handle, limit, ask, read)
        } catch {
          throw changes ? error : error.ofQuestion
        }
      }
    }
  }

  private static func administer<Answer>(
    _ operation: rd_kafka_admin_op_t, _ client: Handle, _ limit: Duration,
    _ ask: (AdminRequest) throws(KafkaError) -> Void, _ read: (AdminAnswer) throws(KafkaError) -> Answer
  ) throws(KafkaError) -> Answer {
    let options = unsafe rd_kafka_AdminOptions_new(client.pointer, operation)
    let answers = unsafe rd_kafka_queue_new(client.pointer)
    defer {
      unsafe rd_kafka_queue_destroy(answers)
      unsafe rd_kafka_AdminOptions_destroy(options)
    }
    // librdkafka takes up to an hour.
    let milliseconds = min(max(1, limit.forLibrdkafka), 3_600_000)
    var words = [CChar](repeating: 0, count: 512)
    // How long to wait for the broker, and how long the broker may wait until the others have it.
    var isAccepted =
      unsafe rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, &words, words.count)
      == RD_KAFKA_RESP_ERR_NO_ERROR
    if [RD_KAFKA_ADMIN_OP_CREATETOPICS, RD_KAFKA_ADMIN_OP_DELETERECORDS].contains(operation) {
      isAccepted =
        unsafe isAccepted
        && rd_kafka_AdminOptions_set_operation_timeout(options, milliseconds, &words, words.count)
          == RD_KAFKA_RESP_ERR_NO_ERROR
    }
    guard isAccepted else { throw KafkaError(.refused, detail: String(terminated: words)) }
    try ask(unsafe AdminRequest(client: client.pointer, options: options, answers: answers))
    // librdkafka keeps the time, so an answer always comes.
    guard let event = unsafe rd_kafka_queue_poll(answers, -1) else { throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT) }
    defer { unsafe rd_kafka_event_destroy(event) }
    let failure = unsafe rd_kafka_event_error(event)
    guard failure == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw KafkaError(failure, words: unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) })
    }
    return try read(unsafe AdminAnswer(event: event))
  }
}

extension KafkaError {
  static let foreignAnswer = KafkaError(.other, detail: "an answer to another question")

  /// Takes over what an answer says of one of its parts, which the answer frees.
  init?(borrowing error: OpaquePointer?) {
    guard let error = unsafe error else { return nil }
    let number = unsafe rd_kafka_error_code(error)
    guard number != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    self.init(number, words: unsafe String(cString: rd_kafka_error_string(error)))
  }
}
