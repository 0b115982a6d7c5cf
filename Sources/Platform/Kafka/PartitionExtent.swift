/// Which offsets a partition holds at the moment.
public struct PartitionExtent: Sendable, Hashable {
  /// The offset of the first record that is kept, or `end` where there is none.
  public let first: Int64
  /// The offset that the next record will have.
  public let end: Int64
  /// By each time that was asked for the offset of the first record that is newer, if there is one.
  public let firstNewer: [Int64: Int64]

  /// An extent from its parts.
  public init(first: Int64, end: Int64, firstNewer: [Int64: Int64]) {
    (self.first, self.end, self.firstNewer) = (first, end, firstNewer)
  }
}
