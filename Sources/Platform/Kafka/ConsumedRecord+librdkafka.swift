import CLibrdkafka
import Glibc

extension ConsumedRecord {
  /// Copies what librdkafka owns but for the headers, which stay with `unread`; the topic's name is one of `names`.
  init(_ taken: UnreadHeaders.Message, _ names: inout TopicNames, _ unread: UnreadHeaders) {
    let message = unsafe taken.pointer.pointee
    topic = unsafe names.name(rd_kafka_topic_name(message.rkt))
    position = unsafe KafkaPosition(partition: message.partition, offset: message.offset)
    key = unsafe Self.bytes(message.key, message.key_len)
    value = unsafe Self.bytes(message.payload, message.len)
    var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let time = unsafe rd_kafka_message_timestamp(taken.pointer, &type)
    // Whoever may write to a topic says when: before 1970 is no time, and librdkafka asks with such numbers for ends.
    timestamp = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || time < 0 ? nil : time
    storedHeaders = .unread(unread.take(taken))
  }

  private static func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
    guard let start = unsafe start else { return nil }
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
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
