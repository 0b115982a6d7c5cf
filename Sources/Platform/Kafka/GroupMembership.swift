/// How a consumer takes part in a group.
public struct GroupMembership: Sendable, Hashable {
  /// The group.
  public let group: ConsumerGroup
  /// The property `group.instance.id`: who comes back under this name within `session.timeout.ms` gets the partitions
  /// that he had, and nobody else's move. Nil for a member that the group forgets when it goes.
  public let instance: String?
  /// How long whoever holds the records of a partition may take to finish with them before it goes to another member.
  /// At most half of `max.poll.interval.ms`: a consumer refuses a lower one.
  public let handover: Duration

  /// Membership in that group.
  public init(_ group: ConsumerGroup, instance: String?, handover: Duration) {
    (self.group, self.instance, self.handover) = (group, instance, handover)
  }
}
