/// What a member of a group is told, in the order in which it happens.
public enum GroupEvent: Sendable, Equatable {
  /// These partitions are ours from now on, each read from where the group left off. Never empty.
  case assigned(Set<TopicPartition>)
  /// The next records of partitions that are ours. Never empty.
  case records([ConsumedRecord])
  /// These partitions go to another member. Whoever holds records of theirs finishes or drops them, and then calls
  /// `release`: until then the partitions are still ours, and librdkafka reads no partition on, so be quick.
  case revoked(Set<TopicPartition>)
  /// These partitions are ours no more, and another member may have begun with them already: whatever is still in
  /// flight for them is to be dropped, and their offsets can no longer be committed.
  case lost(Set<TopicPartition>)
}
