package import Kafka

/// Whether a partition brings what it holds, by what the cluster says when it is asked from time to time.
///
/// librdkafka says only once that a partition may not be read, and nothing at all of one without a leader: the end that it
/// knows stays where it was, so that there seems to be nothing to read.
package struct FetchHealth: Sendable {
  /// What keeps a partition's records from us.
  package enum Fault: Sendable, Equatable {
    /// Nothing is fetched of it, though it holds records before this offset.
    case silent(end: Int64)
    /// The cluster answers no question about it, as where it has no leader.
    case unanswered
  }

  /// A fault counts once it was found so often in a row: leaders change, and large answers take their time.
  private static let patience = 2

  /// The end as it was last asked for, or nil.
  package private(set) var end: Int64?
  /// Where reading was then.
  private var next: Int64?
  private var found: (fault: Fault, times: Int)?

  /// Nothing asked so far.
  package init() {}

  /// What keeps its records from us, where reading is at `next`; nil while nothing does, and once something came.
  package func fault(next: Int64?) -> Fault? {
    found.flatMap { $0.times >= Self.patience && next == self.next ? $0.fault : nil }
  }

  /// The cluster has said what the partition holds.
  ///
  /// - Parameters:
  ///   - next: The offset of the record that is read next; nil where that is not known.
  ///   - fetchedEnd: Where the partition ends by what was fetched of it; nil where nothing was.
  ///   - isAwaited: Whether all that was fetched was taken at some moment since it was asked last, and the partition is
  ///     not paused: otherwise nothing has to be fetched of it.
  package mutating func answered(_ extent: PartitionExtent, next: Int64?, fetchedEnd: Int64?, isAwaited: Bool) {
    // What lies behind what was fetched; it needs not be a record, as transactions leave marks behind their last one.
    let reached = max(next ?? 0, fetchedEnd ?? 0, extent.first)
    let isSilent = isAwaited && next == self.next && reached < end ?? 0
    note(isSilent ? .silent(end: extent.end) : nil)
    (end, self.next) = (extent.end, next)
  }

  /// The cluster has not said it, though it was asked.
  package mutating func unanswered(next: Int64?) {
    note(.unanswered)
    self.next = next
  }

  private mutating func note(_ fault: Fault?) { found = fault.map { ($0, (found?.times ?? 0) + 1) } }
}
