package import AccountStore

/// Of which records of a partition all was announced, as the store knew when it was claimed, or this process does.
package struct AnnouncedRecords: Sendable {
  /// So many ranges are kept in the store at most. Records behind these are announced again after a restart.
  static let mostRanges = 128

  private let offset: Int64
  private var beyond: [Range<Int64>] = []

  /// What a mark says.
  package init(_ mark: AnnouncedMark) {
    offset = mark.offset
    for words in mark.beyond.split(separator: " ") {
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

  /// What is done of a partition.
  init(_ progress: PartitionProgress) {
    (offset, beyond) = (progress.offset ?? 0, progress.doneBeyond(limit: .max))
  }

  /// Whether all of the record at that offset was announced.
  package func contains(_ record: Int64) -> Bool { record < offset || beyond.contains { $0.contains(record) } }

  /// The ranges behind a mark's offset, in the words that the store keeps.
  package static func words(_ ranges: [Range<Int64>], from offset: Int64) -> String {
    ranges.map { "\($0.lowerBound - offset)-\($0.upperBound - 1 - offset)" }.joined(separator: " ")
  }
}
