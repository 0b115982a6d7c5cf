/// A partition, and where reading it begins.
public struct PartitionStart: Sendable, Hashable {
  /// A place in a partition.
  public enum Place: Sendable, Hashable {
    /// The oldest record that is kept.
    case beginning
    /// Behind the newest record.
    case end
    /// The record of that number.
    case offset(Int64)
  }

  /// The topic's name.
  public let topic: String
  /// The partition.
  public let partition: Int32
  /// Where reading begins.
  public let place: Place

  /// Reading `partition` of `topic` from `place` on.
  public init(topic: String, partition: Int32, at place: Place) {
    self.topic = topic
    self.partition = partition
    self.place = place
  }
}
