import CLibrdkafka
import Glibc

extension ConsumedRecord {
  /// Copies what librdkafka owns; the topic's name is one of `names`.
  init(_ pointer: UnsafePointer<rd_kafka_message_t>, _ names: inout TopicNames) {
    let message = unsafe pointer.pointee
    topic = unsafe names.name(rd_kafka_topic_name(message.rkt))
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

/// The names of the topics that a consumer reads, so that not every record has a copy of its own.
struct TopicNames {
  private var names: [String] = []

  /// The name as a string. A consumer reads a handful of topics: comparing names costs less than making one.
  mutating func name(_ name: UnsafePointer<CChar>?) -> String {
    guard let name = unsafe name else { return "" }
    for known in names where unsafe strcmp(known, name) == 0 { return known }
    let new = unsafe String(cString: name)
    names.append(new)
    return new
  }
}
