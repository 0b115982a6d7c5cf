/// Where a record stands in its topic.
public struct KafkaPosition: Sendable, Hashable {
  /// The partition.
  public let partition: Int32
  /// The record's number in its partition.
  public let offset: Int64

  /// A position in a topic.
  public init(partition: Int32, offset: Int64) { (self.partition, self.offset) = (partition, offset) }
}
