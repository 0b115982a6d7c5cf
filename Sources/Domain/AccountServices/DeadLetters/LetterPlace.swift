/// Where a dead letter stands in its topic: what an operator calls it by.
package struct LetterPlace: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The partition.
  package let partition: Int32
  /// The offset.
  package let offset: Int64

  /// A place.
  package init(partition: Int32, offset: Int64) { (self.partition, self.offset) = (partition, offset) }

  /// Nil unless `text` is a partition and an offset with a slash between: `0/17`.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let partition = Int32(parts[0]), let offset = Int64(parts[1]), partition >= 0, offset >= 0
    else { return nil }
    self.init(partition: partition, offset: offset)
  }

  /// In the order in which letters are retried.
  package static func < (left: Self, right: Self) -> Bool {
    (left.partition, left.offset) < (right.partition, right.offset)
  }

  /// `0/17`.
  package var description: String { "\(partition)/\(offset)" }
}
