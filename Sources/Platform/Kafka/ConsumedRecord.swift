/// A record as it was read.
public struct ConsumedRecord: Sendable, Hashable {
  /// The topic's name.
  public let topic: String
  /// Where it stands in the topic.
  public let position: KafkaPosition
  /// The key, if it has one.
  public let key: [UInt8]?
  /// The content; nil is a tombstone.
  public let value: [UInt8]?
  /// What goes beside the content, in its order. Made anew each time that it is asked for.
  public var headers: [KafkaHeader] { packedHeaders.headers }
  /// When it was made, or appended where the topic is set so: milliseconds since 1970. Nil if nobody said.
  public let timestamp: Int64?
  let packedHeaders: PackedHeaders

  /// A record from its parts, for whatever stands in for a topic.
  package init(
    topic: String, position: KafkaPosition, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader], timestamp: Int64?
  ) {
    (self.topic, self.position, self.key, self.value) = (topic, position, key, value)
    (packedHeaders, self.timestamp) = (PackedHeaders(headers), timestamp)
  }
}
