import CLibrdkafka
import Testing

@testable import Kafka

@Suite struct ErrorTests {
  nonisolated static let meanings: [(number: rd_kafka_resp_err_t, code: KafkaError.Code, KafkaError.Consequence)] = [
    (RD_KAFKA_RESP_ERR__FATAL, .fatal, .fatal),
    (RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, .timedOut, .uncertain),
    (RD_KAFKA_RESP_ERR__QUEUE_FULL, .queueFull, .retriable),
    (RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, .brokerUnavailable, .retriable),
    (RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, .brokerUnavailable, .retriable),
    (RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, .brokerUnavailable, .retriable),
    (RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, .notEnoughReplicas, .retriable),
    (RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, .unknownTopic, .retriable),
    (RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, .recordTooLarge, .permanent),
    (RD_KAFKA_RESP_ERR_INVALID_RECORD, .refused, .permanent),
    (RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, .notAuthorized, .retriable),
    (RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, .authenticationFailed, .retriable),
    (RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, .groupChanged, .retriable),
    (RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, .askedTooLate, .retriable),
    (RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, .fenced, .fatal),
    (RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP, .groupInUse, .retriable),
    (RD_KAFKA_RESP_ERR_UNKNOWN, .other, .retriable),
  ]

  @Test(arguments: meanings) func saysWhatFollows(
    _ row: (number: rd_kafka_resp_err_t, code: KafkaError.Code, consequence: KafkaError.Consequence)
  ) {
    let error = KafkaError(row.number)
    #expect(error.code == row.code)
    #expect(error.consequence == row.consequence)
    #expect(
      [error.isRetriable, error.isUncertain, error.isFatal].count { $0 } == (row.consequence == .permanent ? 0 : 1))
  }

  @Test func nothingFollowsWhileTheBrokerMayHaveKeptTheRecord() {
    let kept = KafkaError(undelivered: RD_KAFKA_RESP_ERR__TRANSPORT, mayBePersisted: true)
    #expect(kept.code == .brokerUnavailable)
    #expect(kept.isUncertain)
    #expect(KafkaError(undelivered: RD_KAFKA_RESP_ERR__TRANSPORT, mayBePersisted: false).isRetriable)
    #expect(KafkaError(undelivered: RD_KAFKA_RESP_ERR__FATAL, mayBePersisted: true).isFatal)
  }
}
