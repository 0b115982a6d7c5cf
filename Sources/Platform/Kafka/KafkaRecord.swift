/// A record to be sent.
public struct KafkaRecord: Sendable, Hashable {
  /// The topic's name.
  public var topic: String
  /// The partition; nil lets the key decide (murmur2), as Java's clients do. Clients on librdkafka and Sarama choose other
  /// partitions unless they are told otherwise.
  public var partition: Int32?
  /// What keeps the records of one thing in order, and together where the topic is compacted.
  public var key: [UInt8]?
  /// The content; nil is a tombstone, which removes the key from a compacted topic.
  public var value: [UInt8]?
  /// What goes beside the content.
  public var headers: [KafkaHeader]

  /// A record for `topic`. Key and value are given always: to leave one out is a decision.
  public init(
    topic: String, partition: Int32? = nil, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader] = []
  ) {
    self.topic = topic
    self.partition = partition
    self.key = key
    self.value = value
    self.headers = headers
  }
}
