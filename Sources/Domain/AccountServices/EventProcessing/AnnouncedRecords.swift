package import AccountEvents
package import AccountStore

/// Of which records of a partition all was announced, as the store knew when it was claimed, or this process does.
///
/// An offset alone does not say it: a replay may settle what had no effect before, and a topic that was made anew has other
/// records at the same offsets. So the mark has its time too, and what was settled later is not announced by it.
package struct AnnouncedRecords: Sendable {
  /// So many ranges are kept in the store at most. Records behind these are announced again after a restart.
  static let mostRanges = 128

  private let offset: Int64
  /// The ranges behind it.
  private(set) var beyond: [Range<Int64>] = []
  /// When the mark was raised last; nil where it never was, and says nothing.
  private(set) var until: Timestamp?

  /// What a mark says.
  package init(_ mark: AnnouncedMark) {
    offset = mark.offset
    let words = mark.beyond.split(separator: " ")
    guard let first = words.first, first.hasPrefix("@") else { return }
    until = Int64(first.dropFirst()).flatMap(Timestamp.init(milliseconds:))
    for words in words.dropFirst() {
      let numbers = words.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
      // What another version has written says nothing.
      guard numbers.count == 2, let first = numbers[0], let last = numbers[1], 0 <= first, first <= last,
        last < Int64.max - max(0, mark.offset)
      else {
        beyond = []
        return
      }
      beyond.append(mark.offset + first..<mark.offset + last + 1)
    }
  }

  /// What is done of a partition by now.
  init(_ progress: PartitionProgress, until time: Timestamp) {
    (offset, beyond, until) = (progress.offset ?? 0, progress.doneBeyond(limit: .max), time)
  }

  /// Whether all of the record at that offset was announced, which was settled at `time`.
  package func contains(_ record: Int64, settledAt time: Timestamp) -> Bool {
    guard let until, time <= until else { return false }
    return record < offset || beyond.contains { $0.contains(record) }
  }

  /// The time of a mark and the ranges behind its offset, in the words that the store keeps.
  package static func words(_ ranges: [Range<Int64>], from offset: Int64, until time: Timestamp) -> String {
    ranges.reduce("@\(time.milliseconds)") { words, range in
      words + " \(range.lowerBound - offset)-\(range.upperBound - 1 - offset)"
    }
  }
}
