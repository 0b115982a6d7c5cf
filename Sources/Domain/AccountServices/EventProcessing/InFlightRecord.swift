import AccountEvents
import AccountStore
import EventLoop
import Kafka

/// A record that was read, until it is done or left to the next process.
@Loop
final class InFlightRecord {
  let record: ConsumedRecord
  let partition: AssignedPartition
  private(set) var state = RecordState.queued
  /// Nil once it was taken out of its lane.
  var lane: Lanes<InFlightRecord>.ID?
  /// Whether it waits for its next attempt, or behind one of its account that does.
  var isBackingOff = false

  /// What it says, once that was read.
  var event: AccountEvent?
  var reference: EventReference?
  /// Whether it has proven what it says.
  var isProven = false
  /// What has made it void, where the consumer wants to look at that.
  var supersession: Supersession?
  var decision: Decision?
  var outbound: Outbound?

  /// The attempts that have failed, as far as is known.
  var attempts = FailedAttempts()
  /// How often this process was told to wait for it.
  var waits = 0
  /// Since when this process is told so.
  var waitsSince: MonotonicTime?
  /// Whether the log has an error of its many attempts, or of its waiting.
  var isAlarmed = false, isOverdue = false

  init(_ record: ConsumedRecord, of partition: AssignedPartition) {
    (self.record, self.partition) = (record, partition)
  }

  var offset: Int64 { record.position.offset }

  /// Takes a step; returns what is to be done.
  func step(_ step: RecordState.Step) -> RecordState.Action {
    let wasHolding = state.isHolding
    let action = state.step(step)
    if state.isHolding != wasHolding { partition.holding += wasHolding ? -1 : 1 }
    return action
  }
}

/// Records that are to be put onto the log, in their order.
struct Outbound {
  /// What is said of the event; nothing of a dead letter.
  private(set) var announcements: [Announcement] = []
  /// How many of them the log has.
  private var taken = 0
  /// What is put aside.
  private(set) var letter: KafkaRecord?
  /// What is said instead of a dead letter that the log never takes.
  private var shortened: KafkaRecord?
  /// What a dead letter is counted as.
  private(set) var cause = ""
  /// How many the log has not reported on.
  private var unreported = 0
  /// The first of them that it has not taken.
  private(set) var firstFailed: Int?
  /// How often it was tried.
  private(set) var failures = 0

  /// Whether something newer may have been announced since: then what is true now is asked for first.
  let isToBeComposed: Bool

  init(_ announcements: [Announcement], isToBeComposed: Bool = false) {
    (self.announcements, self.isToBeComposed) = (announcements, isToBeComposed)
  }

  init(_ letter: DeadLetter, cause: String) {
    (self.letter, shortened, self.cause, isToBeComposed) = (letter.record, letter.shortened, cause, false)
  }

  /// What the log is to take of the announcements.
  var unsaid: ArraySlice<Announcement> { announcements[taken...] }

  /// All that is left is given to the log.
  mutating func isGiven() { unreported = letter == nil ? unsaid.count : 1 }

  /// The log has, or has not, taken a record. Returns whether it has reported on all.
  mutating func note(_ result: Result<EventLogPosition, EventLogError>, of index: Int) -> Bool {
    if case .failure(let error) = result {
      firstFailed = min(firstFailed ?? index, index)
      if error.outcome == .refused, let shortened { (letter, self.shortened) = (shortened, nil) }
    }
    unreported -= 1
    return unreported == 0
  }

  /// What is to be tried next: from the first record on that the log has not taken.
  mutating func beginAgain() {
    taken += firstFailed ?? 0
    (firstFailed, failures) = (nil, failures + 1)
  }
}
