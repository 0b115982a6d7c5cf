import EventLoop

/// What a member of a group holds, and what it has to be told of that.
@Loop
struct GroupShare {
  /// The partitions that are ours, those among them that are leaving.
  private(set) var held: Set<TopicPartition> = []
  /// The partitions that go to another member once they are released.
  private(set) var leaving: Set<TopicPartition> = []
  /// Whether the group has given us our share, which may be nothing, and has not put us out since.
  var isMember = false
  /// Counts the hand-overs, so that whoever comes late does not release the next one's partitions.
  private(set) var handover = 0
  /// What is to be told, oldest first.
  var notices: [GroupEvent] = []
  /// When the hand-over has taken too long.
  let deadline = Deadline()

  nonisolated init() {}

  mutating func gain(_ partitions: Set<TopicPartition>) {
    held.formUnion(partitions)
    if !partitions.isEmpty { notices.append(.assigned(partitions)) }
  }

  mutating func beginHandover(_ partitions: Set<TopicPartition>, until time: MonotonicTime) {
    leaving = partitions
    handover += 1
    notices.append(.revoked(partitions))
    deadline.set(time)
  }

  /// Ends the hand-over and returns the partitions that go.
  mutating func endHandover() -> Set<TopicPartition> {
    defer { leaving = [] }
    deadline.clear()
    held.subtract(leaving)
    return leaving
  }

  mutating func lose(_ partitions: Set<TopicPartition>) {
    isMember = false
    // What was told once is not told again.
    let gone = held.intersection(partitions)
    held.subtract(gone)
    leaving.subtract(gone)
    if leaving.isEmpty { deadline.clear() }
    if !gone.isEmpty { notices.append(.lost(gone)) }
  }

  mutating func loseAll() { lose(held) }
}
