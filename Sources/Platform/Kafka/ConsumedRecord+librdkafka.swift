import CLibrdkafka
import Glibc

extension ConsumedRecord {
  /// Copies what librdkafka owns.
  init(_ pointer: UnsafePointer<rd_kafka_message_t>) {
    let message = unsafe pointer.pointee
    topic = unsafe rd_kafka_topic_name(message.rkt).map { unsafe String(cString: $0) } ?? ""
    position = unsafe KafkaPosition(partition: message.partition, offset: message.offset)
    key = unsafe Self.bytes(message.key, message.key_len)
    value = unsafe Self.bytes(message.payload, message.len)
    packedHeaders = unsafe Self.headers(pointer)
    var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let time = unsafe rd_kafka_message_timestamp(pointer, &type)
    timestamp = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? nil : time
  }

  private static func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
    guard let start = unsafe start else { return nil }
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  private static func headers(_ message: UnsafePointer<rd_kafka_message_t>) -> PackedHeaders {
    var headers = PackedHeaders()
    var list: OpaquePointer?
    // The list belongs to the message.
    guard unsafe rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR else { return headers }
    var index = 0
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    while unsafe rd_kafka_header_get_all(list, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR {
      guard let name = unsafe name else { break }
      unsafe headers.append(
        UnsafeRawBufferPointer(start: name, count: strlen(name)),
        value.map { unsafe UnsafeRawBufferPointer(start: $0, count: size) })
      index += 1
    }
    return headers
  }
}
