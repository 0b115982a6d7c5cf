/// A partition of a topic.
public struct TopicPartition: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The topic's name.
  public let topic: String
  /// The partition.
  public let partition: Int32

  /// A partition of that topic.
  public init(_ topic: String, _ partition: Int32) { (self.topic, self.partition) = (topic, partition) }

  /// By topic, then by number.
  public static func < (left: Self, right: Self) -> Bool {
    (left.topic, left.partition) < (right.topic, right.partition)
  }

  /// `topic/3`.
  public var description: String { "\(topic)/\(partition)" }
}
