import CLibrdkafka

extension KafkaError {
  /// What librdkafka's number means. `words` replaces the number's own text where librdkafka said more.
  init(_ number: rd_kafka_resp_err_t, words: String? = nil) {
    self.init(Code(number), detail: words ?? Self.text(of: number))
  }

  /// What a delivery report with an error means: nothing may be concluded while the broker may have kept the record.
  init(undelivered number: rd_kafka_resp_err_t, mayBePersisted: Bool) {
    let code = Code(number)
    self.init(code, code != .fatal && mayBePersisted ? .uncertain : nil, detail: Self.text(of: number))
  }

  /// Takes over an error object of librdkafka's and frees it.
  init(consuming error: OpaquePointer) {
    let number = unsafe rd_kafka_error_code(error)
    let words = unsafe String(cString: rd_kafka_error_string(error))
    let isFatal = unsafe rd_kafka_error_is_fatal(error) != 0
    unsafe rd_kafka_error_destroy(error)
    let code = Code(number)
    self.init(isFatal && code != .fenced ? .fatal : code, detail: words)
  }

  /// What an error event says. librdkafka puts the cause of a fatal error in its place.
  init(reported event: OpaquePointer) {
    let code = unsafe Code(rd_kafka_event_error(event))
    let words = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) }
    let isFatal = unsafe rd_kafka_event_error_is_fatal(event) != 0
    self.init(isFatal && code != .fenced ? .fatal : code, detail: words ?? code.rawValue)
  }

  private static func text(of number: rd_kafka_resp_err_t) -> String {
    unsafe String(cString: rd_kafka_err2str(number))
  }
}

extension KafkaError.Code {
  /// The code under which librdkafka's number is counted.
  init(_ number: rd_kafka_resp_err_t) {
    switch number {
    // Whatever `rd_kafka_error_is_fatal` says elsewhere: this one is.
    case RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
      RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE:
      self = .fatal
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
      self = .groupMoving
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
      self = .fenced
    case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
      self = .askedTooLate
    case RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP:
      self = .groupInUse
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      self = .queueFull
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
      self = .timedOut
    case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__RESOLVE,
      RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__WAIT_CACHE,
      RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__UNKNOWN_BROKER, RD_KAFKA_RESP_ERR__RETRY,
      RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
      RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
      RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
      RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
      // CORRUPT_MESSAGE in Kafka's words: the batch was damaged on its way.
      RD_KAFKA_RESP_ERR_INVALID_MSG:
      self = .brokerUnavailable
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
      RD_KAFKA_RESP_ERR__ISR_INSUFF:
      self = .notEnoughReplicas
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
      self = .unknownTopic
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
      self = .topicExists
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
      RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
      self = .recordTooLarge
    case RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
      RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_RESP_ERR_POLICY_VIOLATION, RD_KAFKA_RESP_ERR_INVALID_CONFIG,
      RD_KAFKA_RESP_ERR_INVALID_PARTITIONS, RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR,
      RD_KAFKA_RESP_ERR_INVALID_REQUEST, RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, RD_KAFKA_RESP_ERR_INVALID_GROUP_ID,
      RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT, RD_KAFKA_RESP_ERR__INVALID_ARG:
      self = .refused
    case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
      RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE, RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
      self = .authenticationFailed
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      self = .notAuthorized
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
      self = .unsupported
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR__NO_OFFSET:
      self = .offsetOutOfRange
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
      RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST,
      RD_KAFKA_RESP_ERR_MEMBER_ID_REQUIRED:
      self = .groupChanged
    case RD_KAFKA_RESP_ERR__DESTROY:
      self = .closed
    default:
      self = .other
    }
  }
}
