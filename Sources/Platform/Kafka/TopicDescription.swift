/// A topic as the cluster describes it.
public struct TopicDescription: Sendable, Hashable {
  /// A partition of the topic.
  public struct Partition: Sendable, Hashable {
    /// The partition's number.
    public let number: Int32
    /// The broker that takes its records; nil while there is none.
    public let leader: Int32?
    /// How many brokers keep it.
    public let replicas: Int
    /// How many of those are up to date.
    public let inSyncReplicas: Int
  }

  /// The topic's name.
  public let name: String
  /// The partitions, by number.
  public let partitions: [Partition]

  /// Whether each partition has a broker that takes its records.
  public var isReady: Bool { !partitions.isEmpty && partitions.allSatisfy { $0.leader != nil } }
}
