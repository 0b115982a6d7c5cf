package import Kafka

/// Whether a partition brings what it holds, by what the cluster says when it is asked from time to time.
///
/// librdkafka says only once that a partition may not be read. From then on nothing tells it of new records, so that there
/// seems to be nothing to read.
package struct FetchHealth: Sendable {
  /// So often in a row nothing was fetched before it counts: leaders change, and large answers take their time.
  private static let patience = 2

  /// What the partition held when it was asked about last; nil before.
  package private(set) var extent: PartitionExtent?
  /// Where reading was then.
  private var next: Int64?
  private var misses = 0

  /// Nothing asked so far.
  package init() {}

  /// Where the partition ends of which nothing comes though it holds records, and reading is at `next`; nil as long as it
  /// brings what it holds, and once something came.
  package func silentEnd(next: Int64?) -> Int64? {
    misses >= Self.patience && next == self.next ? extent?.end : nil
  }

  /// The cluster has said what the partition holds.
  ///
  /// - Parameters:
  ///   - next: The offset of the record that is read next; nil where that is not known.
  ///   - fetchedEnd: Where the partition ends by what was fetched of it; nil where nothing was.
  ///   - isAwaited: Whether all that was fetched was taken at some moment since it was asked last, and the partition is
  ///     not paused: otherwise nothing has to be fetched of it.
  package mutating func answered(_ extent: PartitionExtent, next: Int64?, fetchedEnd: Int64?, isAwaited: Bool) {
    // What was fetched needs not be a record: transactions leave marks behind their last one.
    let reached = max(next ?? 0, min(fetchedEnd ?? 0, extent.end), extent.first)
    let isMissed = isAwaited && next == self.next && reached < self.extent?.end ?? 0
    misses = isMissed ? misses + 1 : 0
    (self.extent, self.next) = (extent, next)
  }
}
