import CLibrdkafka
import EventLoop

extension Client {
  /// Copies the record into librdkafka's queue, with these headers and not its own, which librdkafka takes over if it
  /// takes the record.
  @Loop
  func produce(
    _ record: KafkaRecord, _ headers: inout HeaderList, topic: Topic, mark: Int
  ) -> rd_kafka_resp_err_t {
    let list = unsafe headers.pointer
    let result = unsafe withBytes(record.key) { key, keySize in
      unsafe withBytes(record.value) { value, valueSize in
        unsafe crdkafka_produce(
          handle.pointer, topic.handle, record.partition ?? RD_KAFKA_PARTITION_UA, key, keySize, value, valueSize, list,
          UInt(bitPattern: mark))
      }
    }
    if result == RD_KAFKA_RESP_ERR_NO_ERROR { headers.letGo() }
    return result
  }
}

/// Calls `body` with the bytes: nil for nil, but never for empty ones, which Kafka tells apart.
func withBytes<Value>(_ bytes: [UInt8]?, _ body: (UnsafeRawPointer?, Int) -> Value) -> Value {
  guard let bytes else { return body(nil, 0) }
  return unsafe bytes.withUnsafeBytes { raw in
    if let base = raw.baseAddress, raw.count > 0 { return unsafe body(base, raw.count) }
    var nothing: UInt8 = 0
    return unsafe body(&nothing, 0)
  }
}

extension DeliveryResult {
  /// What a delivery report says.
  init(_ report: UnsafePointer<rd_kafka_message_t>) {
    let message = unsafe report.pointee
    if unsafe message.err == RD_KAFKA_RESP_ERR_NO_ERROR {
      self = .success(unsafe KafkaPosition(partition: message.partition, offset: message.offset))
    } else {
      let mayBePersisted = unsafe rd_kafka_message_status(report) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED
      self = .failure(KafkaError(undelivered: unsafe message.err, mayBePersisted: mayBePersisted))
    }
  }
}

extension KafkaError {
  static let producerClosed = KafkaError(.closed, detail: "the producer is closed")
  static let closedBeforeAnswer = KafkaError(
    .closed, .uncertain, detail: "the producer was closed before the broker answered")
  static let noAnswer = KafkaError(.timedOut, detail: "no acknowledgement within the deadline")
}
