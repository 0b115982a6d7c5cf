import AccountEvents
import AccountStore
import EventLoop
import Kafka

/// One record on its way from Kafka to its effect.
@Loop
final class Passage {
  let record: ConsumedRecord
  let partition: PartitionWork
  let lane: Lane
  /// What it says, once that was read.
  var subject: (event: AccountEvent, reference: EventReference)?
  /// How many attempts have failed, as far as is known.
  var attempts = 0
  /// How often it was told to wait.
  var waits = 0
  /// What has made it void, where the consumer wants to look at that.
  var supersession: Supersession?
  /// Whether something may have happened for it that is not finished: it is not dropped as long as that goes on.
  var isExecuting = false
  /// Whether it was given up here: whoever has its partition next does what is left.
  var isDropped = false
  /// Whether it was settled before, by whomever.
  var isSettled = false
  /// Whether it waits for its next attempt, or behind one of its account that does.
  var isParked = false
  /// Why the last attempt failed, while it waits for the next.
  var waitsFor: String?
  /// Whether the log has an error of its many attempts.
  var isAlarmed = false
  /// Whether the log has an error of its waiting.
  var isOverdue = false

  init(_ record: ConsumedRecord, of partition: PartitionWork, in lane: Lane) {
    (self.record, self.partition, self.lane) = (record, partition, lane)
  }

  var offset: Int64 { record.position.offset }
}

/// The records of one account, in the order in which they came: one at a time is under way.
@Loop
final class Lane {
  let key: LaneKey
  var passages: [Passage] = []
  /// Whether the first one waits for its next attempt.
  var isParked = false
  /// Since when its first event fails, and those before it were given up; nil where the last one has succeeded.
  var failingSince: MonotonicTime?

  init(_ key: LaneKey) { self.key = key }
}

/// The key of a lane's records.
struct LaneKey: Hashable {
  let bytes: [UInt8]

  /// All bytes at once: an array hashes them one by one.
  func hash(into hasher: inout Hasher) { unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) } }
}
