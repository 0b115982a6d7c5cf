import AccountStore
import EventLoop
import Kafka

/// What is under way of one partition, from the moment that it is ours to the moment that it is not.
@Loop
final class PartitionWork {
  let partition: TopicPartition
  /// The queue of its announcements in the store.
  var queue: Int32 { EventOrigin(topic: partition.topic, partition: partition.partition, offset: 0).queue }
  var progress = PartitionProgress()
  /// Whether its records follow one another.
  var continuity = PartitionContinuity()
  /// Whether nobody could say what the group has committed: until somebody can, nothing is, so that a hole is found.
  var isUnknown = false
  /// The offset of the first record that was read.
  var first: Int64?
  /// What the group was told last.
  var committed: Int64?
  /// How many records wait for their next attempt, or behind one of their account that does.
  var parked = 0
  /// How many go on, or could.
  var active: Int { progress.count - parked }
  /// How many records are being worked on.
  var executing = 0
  /// Whether it is on its way to another member: nothing is begun any more.
  var isLeaving = false
  /// Whether another member may have it by now.
  var isGone = false
  var isPaused = false
  /// Whether it is about to be read from its first record on: what comes until then does not count.
  var isMoving = false
  /// The offset of that record, once it is known.
  var goal: Int64?
  /// Whether it has gone back twice.
  var hasGoneBackTwice = false
  /// What was read last.
  var recent = RecentRecords()
  /// Whether the partition began anew, and this is what was under way before.
  var isBegunAnew = false
  /// Whether it is paused because too much waits for its next attempt.
  var isStuck = false
  /// Whether what a former process left to be said is said. Before that nothing is begun.
  var isRecovered = false
  /// What waits for that.
  var unrecovered: [Passage] = []
  /// What somebody has settled before: what there is to be said of it may be in the store still.
  var settledBefore: [Passage] = []
  /// Announcements that are in our hands: published, or about to be.
  var announcing: Set<Int64> = []
  /// Announcements in the store that cannot be read.
  var unreadable: Set<Int64> = []
  /// Whether the store is asked what there is to be said, or about to be, until that is said.
  var isRereading = false
  /// Whether what the store had is being said.
  var isSaying = false

  init(_ partition: TopicPartition) { self.partition = partition }
}
