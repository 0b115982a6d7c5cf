/// A topic to be made.
public struct NewTopic: Sendable, Hashable {
  /// The topic's name.
  public var name: String
  /// How many partitions it gets.
  public var partitions: Int
  /// How many brokers keep each partition; nil leaves it to the cluster.
  public var replicationFactor: Int?
  /// Settings of the topic by Kafka's own names, such as `cleanup.policy`.
  public var settings: [String: String]

  /// A topic of that name.
  public init(_ name: String, partitions: Int, replicationFactor: Int?, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replicationFactor = replicationFactor
    self.settings = settings
  }
}
