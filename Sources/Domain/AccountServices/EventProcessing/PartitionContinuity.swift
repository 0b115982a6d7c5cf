package import Kafka

/// Whether a partition's records follow one another: without a hole, which is a loss, and without a step back, which is
/// another topic under the same name, or one that has lost its end.
///
/// The offset alone cannot tell a topic that was made anew, and holds more records than the group has read, from the one
/// before; nor does Kafka tell a consumer, which reads on at its number. Time can tell: every record that follows what
/// was read is newer than all of that. So the cluster is asked now and then for the first record that is newer than what
/// was read. One that lies before our place is none of those. What was read since the last question may be of another
/// topic; therefore the same is asked of a mark, the place of the last question that found nothing. Both are committed as
/// a note beside the offset, for whoever reads on.
///
/// Where records went before any was read there is an offset and no time: a topic that is made anew then, and holds as many
/// records again before the next question, looks like the one before.
package struct PartitionContinuity: Sendable, Equatable {
  /// What was found out.
  package enum Finding: Sendable, Equatable {
    /// The next record is the one that is expected.
    case goesOn
    /// The group has committed nothing here: it begins at the first record there is. Earlier ones were deleted before it
    /// came, if that is not 0.
    case begins(at: Int64)
    /// These records are gone, and nobody has read them.
    case missing(Range<Int64>)
    /// The offsets begin again: other records may stand from here on than those that were read, up to the offset that
    /// was expected.
    case begunAnew(at: Int64, expected: Int64)
  }

  /// The offset of the next record; nil where that is not known.
  package private(set) var next: Int64?
  /// The newest time of the records before it, in milliseconds since 1970; nil where none is known.
  package private(set) var newest: Int64?
  /// A place of which it is known that all records before it are as old as its time, or older.
  private var mark: Mark?

  private struct Mark: Sendable, Equatable {
    let next: Int64
    let newest: Int64
  }

  /// A partition of which nothing is known: its first record is the one to begin with.
  package init() {}

  /// A partition of which the group has committed this.
  package init(_ committed: CommittedOffset?) {
    next = committed?.offset
    let numbers = committed?.note.split(separator: " ", omittingEmptySubsequences: false).map { Int64($0) } ?? []
    // A note of somebody else's says nothing.
    guard numbers.count == 3, let place = numbers[0], let time = numbers[1], let newest = numbers[2],
      min(place, time, newest) >= 0
    else { return }
    mark = Mark(next: place, newest: time)
    self.newest = newest
  }

  /// What is committed beside an offset: the mark's offset and time, and the newest time.
  package var note: String {
    guard let mark, let newest else { return "" }
    return "\(mark.next) \(mark.newest) \(newest)"
  }

  /// The times to ask with, for the first record that is newer.
  package var times: Set<Int64> { Set(marks.map(\.newest)) }

  private var place: Mark? { next.flatMap { next in newest.map { Mark(next: next, newest: $0) } } }
  private var marks: [Mark] { [mark, place].compactMap(\.self) }

  /// Takes over how far it was compared, where records were read meanwhile.
  package mutating func isCompared(as other: Self) { mark = other.mark }

  /// Compares our place with what the partition holds, asked for with `times`; then goes on where it can.
  package mutating func compare(with extent: PartitionExtent) -> Finding {
    defer { mark = place }
    guard let expected = next else {
      next = extent.first
      return .begins(at: extent.first)
    }
    if expected < extent.first {
      next = extent.first
      return .missing(expected..<extent.first)
    }
    if expected > extent.end { return beginAnew(at: extent.first, expected) }
    let isForeign = marks.contains { mark in extent.firstNewer[mark.newest].map { $0 < mark.next } ?? false }
    // Where the others begin is not known, since clocks differ; and before them there may be some that are not done.
    if isForeign { return beginAnew(at: extent.first, expected) }
    return .goesOn
  }

  /// Goes on with the first record that the partition holds.
  package mutating func goBack(to first: Int64) {
    next = first
    mark = place
  }

  /// Takes a record that was read.
  package mutating func read(_ offset: Int64, time: Int64?) -> Finding {
    defer {
      next = offset + 1
      if let time { newest = max(newest ?? time, time) }
      mark = mark ?? place
    }
    guard let expected = next, offset != expected else { return .goesOn }
    if offset > expected { return .missing(expected..<offset) }
    mark = nil
    return .begunAnew(at: offset, expected: expected)
  }

  private mutating func beginAnew(at place: Int64, _ expected: Int64) -> Finding {
    next = place
    return .begunAnew(at: place, expected: expected)
  }
}
