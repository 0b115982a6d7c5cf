import AccountEvents
import AccountStore
import EventLoop
import Kafka

/// A partition and what is under way of it, from the moment that it is ours to the moment that it is not.
@Loop
final class AssignedPartition {
  /// From the group's giving it to us to its taking it.
  enum Life: Equatable {
    /// It begins anew, and is about to be read from its first record on: what comes until then does not count. The offset
    /// of that record, once it is known.
    case movingBack(to: Int64?)
    /// Its records wait until the store knows that it is ours.
    case claiming
    case owned
    /// The group has worked with another account store, on it or on others while nothing was committed here: no record of it
    /// is taken, and nothing is committed. The other store, where it was on this one.
    case foreign(store: String?)
    /// It is on its way to another member: nothing is begun any more.
    case leaving
    /// Another member may have it by now.
    case gone
    /// It began anew: it is ours under another object, and this is what was under way before.
    case replaced
  }

  let place: TopicPartition
  /// Its share of the room.
  let room: Room.ID
  /// Whether records come here a second time, after somebody has looked at them: then others of their account may be
  /// under way in the producer of another member.
  let isOfRetries: Bool
  var life = Life.claiming
  var progress = PartitionProgress()
  /// How many records of it are held.
  var holding = 0

  // Whether its records follow one another.
  var continuity = PartitionContinuity()
  /// What was read last.
  var recent = RecentRecords()
  /// The offset of the first record that was read.
  var first: Int64?
  /// Whether nobody could say what the group has committed: until somebody can, nothing is, so that a hole is found.
  var isUnknown = false
  /// What the group was told last.
  var committed: Int64?
  /// How often it was to be read from its first record on.
  var timesMovedBack = 0

  /// Whether it brings what it holds.
  var fetching = FetchHealth()

  // What of it was announced.
  /// The mark that the store has of it; nil until it is claimed, and where the consumer announces nothing.
  var mark: AnnouncedMark?
  /// What was announced when it was claimed.
  var announced: AnnouncedRecords?
  /// What was announced of it before it began anew, and when that was seen: of what it has still, nothing is again.
  var before: AnnouncedRecords?
  /// First records of their lanes that wait for it to be claimed.
  var unclaimed: [InFlightRecord] = []
  /// What was said of it since the store last said that it is ours, where the last record of a key counts.
  private var said: [Announcement] = []
  /// How many were said before these.
  private var saidBefore = 0

  init(_ place: TopicPartition, room: Room.ID, isOfRetries: Bool) {
    (self.place, self.room, self.isOfRetries) = (place, room, isOfRetries)
  }

  /// Whether nothing of it is begun any more.
  var isLeaving: Bool {
    switch life {
    case .leaving, .gone, .replaced: true
    case .movingBack, .claiming, .owned, .foreign: false
    }
  }

  /// Whether nothing of it is taken, as the group has worked with another account store.
  var isForeign: Bool { if case .foreign = life { true } else { false } }

  /// Whether another member may have it, or this process has it under another object.
  var isGone: Bool { life == .gone || life == .replaced }

  /// The mark as it could be raised now; nil where the store has it so, and nothing was said that it could confirm.
  func newMark(at time: Timestamp) -> AnnouncedMark? {
    guard var mark else { return nil }
    guard let offset = progress.offset, offset >= mark.offset else { return said.isEmpty ? nil : mark }
    let ranges = Array(doneBeyond.prefix(AnnouncedRecords.mostRanges))
    let known = AnnouncedRecords(mark)
    // Another member's clock may be ahead of ours.
    let until = max(time, known.until ?? time)
    if offset == mark.offset, known.until != nil, ranges == known.beyond { return said.isEmpty ? nil : mark }
    (mark.offset, mark.beyond) = (offset, AnnouncedRecords.words(ranges, from: offset, until: until))
    return mark
  }

  /// What is done behind the first record that is not, with what a former process has done there and has not come again.
  private var doneBeyond: [Range<Int64>] {
    let done = progress.doneBeyond(limit: AnnouncedRecords.mostRanges)
    let end = progress.end ?? 0
    return done
      + (announced?.beyond ?? []).filter { $0.upperBound > end }.map { max($0.lowerBound, end)..<$0.upperBound }
  }

  /// The store has raised the mark, at a moment at which so much was said.
  func raised(_ new: AnnouncedMark, said count: Int) {
    if let mark, mark.claim == new.claim, mark.offset <= new.offset { self.mark = new }
    if count > saidBefore {
      said.removeFirst(count - saidBefore)
      saidBefore = count
    }
  }

  /// How much was said by now.
  var saidCount: Int { saidBefore + said.count }

  /// Remembers what was said.
  func note(said announcement: Announcement) { said.append(announcement) }

  /// Takes what was said since the store last said that the partition is ours.
  func takeSaid() -> [Announcement] {
    saidBefore += said.count
    defer { said = [] }
    return said
  }

  /// Whether all that follows from a record of it was announced, by what the ledger says of the event.
  func wasAnnounced(_ offset: Int64, _ entry: LedgerEntry) -> Bool {
    [announced, before].contains { $0?.contains(offset, settledAt: entry.at) ?? false }
  }
}
