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
  public var headers: [KafkaHeader] { storedHeaders.packed.headers }
  /// When it was made, or appended where the topic is set so: milliseconds since 1970, and as large as whoever wrote it
  /// says. Nil if nobody said, or no such time.
  public let timestamp: Int64?
  let storedHeaders: StoredHeaders

  /// A record from its parts, for whatever stands in for a topic.
  package init(
    topic: String, position: KafkaPosition, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader], timestamp: Int64?
  ) {
    (self.topic, self.position, self.key, self.value) = (topic, position, key, value)
    (storedHeaders, self.timestamp) = (.packed(PackedHeaders(headers)), timestamp)
  }
}

/// Where a record's headers are.
enum StoredHeaders: Sendable, Hashable {
  /// Here.
  case packed(PackedHeaders)
  /// With librdkafka, until somebody asks for them.
  case unread(UnreadHeaders.Reference)

  /// The headers in one run of bytes.
  var packed: PackedHeaders {
    switch self {
    case .packed(let headers): headers
    case .unread(let headers): headers.packed
    }
  }

  /// Wherever they are, the headers are what counts.
  static func == (left: Self, right: Self) -> Bool { left.packed == right.packed }

  func hash(into hasher: inout Hasher) { packed.hash(into: &hasher) }
}
