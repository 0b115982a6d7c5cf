import CLibrdkafka

/// librdkafka's object for a topic, with the name under which it is looked for.
@safe struct Topic {
  let name: String
  let handle: OpaquePointer

  /// The object that belongs to the client. Throws when no topic can have that name.
  init(named name: String, _ client: Client) throws(KafkaError) {
    guard let handle = unsafe rd_kafka_topic_new(client.handle.pointer, name, nil) else {
      throw KafkaError(rd_kafka_last_error())
    }
    self.name = name
    unsafe self.handle = handle
  }

  /// Gives it back, before the client is destroyed.
  func destroy() { unsafe rd_kafka_topic_destroy(handle) }
}
