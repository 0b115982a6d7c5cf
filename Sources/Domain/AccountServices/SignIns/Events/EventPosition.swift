/// How far somebody has read the topic of all events: of each partition, which count from 0, the offset of the next record.
/// As text it is what `id` and `Last-Event-ID` say: opaque to whoever shows it, and never believed.
struct EventPosition: Sendable, Hashable {
  /// Longer texts are not looked at.
  static let longestText = 12_288
  /// Offsets are less than this.
  private static let end: Int64 = 1 << 53
  private static let mostPartitions = 1000
  private static let version = "1"

  /// The next offset of each partition.
  private(set) var offsets: [Int64]

  /// The position with these offsets; nil where the partitions do not count from 0, or are more than there may be.
  init?(_ offsets: [Int32: Int64]) {
    self.offsets = offsets.sorted { $0.key < $1.key }.map(\.value)
    guard 1...Self.mostPartitions ~= offsets.count, offsets.keys.allSatisfy({ 0..<Int32(offsets.count) ~= $0 }),
      self.offsets.allSatisfy({ 0..<Self.end ~= $0 })
    else { return nil }
  }

  /// Nil unless `text` is the text of a position.
  init?(_ text: String) {
    guard text.utf8.count <= Self.longestText else { return nil }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.first == Self.version[...], 2...Self.mostPartitions + 1 ~= parts.count else { return nil }
    offsets = parts.dropFirst().compactMap { Int64($0, radix: 36) }
    // A position has one text: neither a sign nor a capital letter, and no 0 before a number.
    guard offsets.allSatisfy({ 0..<Self.end ~= $0 }), self.text == text else { return nil }
  }

  /// What `init` reads.
  var text: String { ([Self.version] + offsets.map { String($0, radix: 36) }).joined(separator: ".") }

  /// The offset of the next record of a partition; 0 of one that is not known yet.
  subscript(partition: Int32) -> Int64 { offsets.indices.contains(Int(partition)) ? offsets[Int(partition)] : 0 }

  /// Notes that the record at an offset was read. Never goes back.
  mutating func pass(_ offset: Int64, of partition: Int32) {
    let index = Int(partition)
    guard offsets.indices.contains(index), offsets[index]..<Self.end - 1 ~= offset else { return }
    offsets[index] = offset + 1
  }

  /// Whether it is as far as another one, in each of the same partitions.
  func reaches(_ other: EventPosition) -> Bool {
    offsets.count == other.offsets.count && zip(offsets, other.offsets).allSatisfy { $0 >= $1 }
  }

  /// Where reading goes on in a topic whose partitions hold these offsets: where the topic no longer holds what comes next,
  /// or has never been there, at the first record that it holds. Nil where it is no topic that a position can be of.
  func resumed(in held: [Int32: Range<Int64>]) -> (position: EventPosition, isGap: Bool)? {
    var isGap = offsets.count > held.count
    var next: [Int32: Int64] = [:]
    for (partition, range) in held {
      let isHeld = range.lowerBound...range.upperBound ~= self[partition]
      if !isHeld { isGap = true }
      next[partition] = isHeld ? self[partition] : range.lowerBound
    }
    return EventPosition(next).map { ($0, isGap) }
  }
}
