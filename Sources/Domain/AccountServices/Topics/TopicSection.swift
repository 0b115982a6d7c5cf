package import AccountEvents
import EventLoop

/// A part of what stands on a topic, or in a file of its records: from one bound to another.
package struct TopicSection: Sendable, Hashable {
  /// Where a part begins or ends.
  package enum Bound: Sendable, Hashable {
    /// Where the topic does.
    case edge
    /// In each partition at the first record that was appended then or later.
    case time(Timestamp)
    /// At these offsets, by partition: the others do not belong to the part.
    case offsets([Int32: Int64])

    /// Says it, in the same words for the same bound alone.
    package var words: String {
      switch self {
      case .edge: "edge"
      case .time(let time): "\(time)"
      case .offsets(let offsets):
        offsets.sorted { $0.key < $1.key }.map { "\($0.key)/\($0.value)" }.joined(separator: " ")
      }
    }

    fileprivate var partitions: Set<Int32>? {
      guard case .offsets(let offsets) = self else { return nil }
      return Set(offsets.keys)
    }
  }

  /// Where it begins.
  package let from: Bound
  /// Where it ends: what is there does not belong to it.
  package let until: Bound

  /// The part between two bounds.
  package init(from: Bound, until: Bound) { (self.from, self.until) = (from, until) }

  /// Exactly these offsets.
  package init(of offsets: [Int32: Range<Int64>]) {
    self.init(from: .offsets(offsets.mapValues(\.lowerBound)), until: .offsets(offsets.mapValues(\.upperBound)))
  }

  /// Which offsets of each partition belong to it, of those that there are.
  package struct Offsets: Sendable, Equatable {
    /// The offsets, without partitions of which none belong to it.
    package var ranges: [Int32: Range<Int64>] = [:]
    /// Those before them that were asked for and are not there any more.
    package var gone: [Int32: Range<Int64>] = [:]
    /// Partitions that were named and do not exist.
    package var unknown: Set<Int32> = []
  }

  /// The offsets that belong to it, of a topic that holds `held`. `since` says where each partition's first record is that
  /// was appended at a time or later, or its end.
  @Loop
  package func offsets(
    of held: [Int32: Range<Int64>], since: (Timestamp) async throws -> [Int32: Int64]
  ) async throws -> Offsets {
    let first = try await places(of: from, since: since)
    let last = try await places(of: until, since: since)
    var offsets = Offsets()
    offsets.unknown = (from.partitions ?? []).union(until.partitions ?? []).subtracting(held.keys)
    for (partition, there) in held {
      if let named = from.partitions, !named.contains(partition) { continue }
      if let named = until.partitions, !named.contains(partition) { continue }
      let begin = first?[partition] ?? there.lowerBound
      let end = min(last?[partition] ?? there.upperBound, there.upperBound)
      if begin < there.lowerBound, begin < end { offsets.gone[partition] = begin..<min(there.lowerBound, end) }
      if max(begin, there.lowerBound) < end { offsets.ranges[partition] = max(begin, there.lowerBound)..<end }
    }
    return offsets
  }

  @Loop
  private func places(
    of bound: Bound, since: (Timestamp) async throws -> [Int32: Int64]
  ) async throws -> [Int32: Int64]? {
    switch bound {
    case .edge: nil
    case .time(let time): try await since(time)
    case .offsets(let offsets): offsets
    }
  }
}
