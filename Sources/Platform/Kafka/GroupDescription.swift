/// A consumer group as the cluster describes it.
public struct GroupDescription: Sendable, Hashable {
  /// What the group does.
  public enum State: String, Sendable, CaseIterable {
    /// Each member has its partitions.
    case stable
    /// Partitions move between members.
    case rebalancing
    /// There is no member, but the cluster knows how far the group is.
    case empty
    /// Nobody knows of such a group.
    case dead
    /// The cluster says something that is not known here.
    case unknown
  }

  /// A member of the group.
  public struct Member: Sendable, Hashable {
    /// The name that the cluster gave it.
    public let name: String
    /// The property `group.instance.id`, if it has one.
    public let instance: String?
    /// The property `client.id`.
    public let client: String
    /// Where it runs, as the broker sees it.
    public let host: String
    /// The partitions that it reads.
    public let partitions: Set<TopicPartition>
  }

  /// What the group does.
  public let state: State
  /// Who takes part in it.
  public let members: [Member]
}
