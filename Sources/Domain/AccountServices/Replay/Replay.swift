package import EventLoop
import Kafka

/// Records again, from where they stand to a destination, as far as a filter lets them through.
///
/// Where it ends before its end, whoever begins anew with what is `left` goes on: a record may come to the destination
/// twice then, and none is left out.
@Loop
package final class Replay {
  /// How far it is.
  package struct Progress: Sendable, Equatable {
    /// How many offsets were read, and how many there are to be read.
    package fileprivate(set) var done, total: Int64
    /// How many records were read.
    package fileprivate(set) var read: Int64 = 0
    /// How many of them the filter let through.
    package fileprivate(set) var replayed: Int64 = 0
  }

  /// What is to be read still.
  package private(set) var left: [Int32: Range<Int64>]
  /// How far it is.
  package private(set) var progress: Progress

  /// Whether nothing is left to do: all was read, or there were as many records as there may be.
  package var isComplete: Bool { left.isEmpty || progress.replayed >= most }

  private let topic: ReplayedTopic
  private let filter: ReplayFilter
  private let source: any ReplaySource
  private let most: Int64
  private var isStopped = false

  /// A replay of these offsets, and of `most` records at most.
  package init(
    of offsets: [Int32: Range<Int64>], from source: any ReplaySource, _ topic: ReplayedTopic, _ filter: ReplayFilter,
    atMost most: Int64
  ) {
    (self.source, self.topic, self.filter, self.most) = (source, topic, filter, most)
    left = offsets
    progress = Progress(done: 0, total: offsets.values.reduce(0) { $0 + Int64($1.count) })
  }

  /// Does it, and calls `each` after each page. Ends early where it is stopped, or there were as many as there may be.
  package func run(
    to destination: any ReplayDestination, each: @Loop (Progress) async throws -> Void
  ) async throws {
    try await source.begin(left)
    let result: Result<Void, any Error>
    do { result = .success(try await pass(to: destination, each)) } catch { result = .failure(error) }
    await source.close()
    try result.get()
  }

  /// Ends it once the destination has what it was given.
  package func stop() async {
    isStopped = true
    await source.close()
  }

  private func pass(to destination: any ReplayDestination, _ each: @Loop (Progress) async throws -> Void) async throws {
    while !isStopped, progress.replayed < most, let page = try await source.next() {
      let room = Int(clamping: most - progress.replayed)
      var chosen: [ConsumedRecord] = []
      var rest = page[...]
      while chosen.count < room, let record = rest.popFirst() {
        if filter.lets(record, of: topic) { chosen.append(record) }
      }
      let taken = page.prefix(page.count - rest.count)
      var failure: ReplayFailure?
      if !chosen.isEmpty {
        do throws(ReplayFailure) { try await destination.take(chosen) } catch { failure = error }
      }
      for record in taken {
        let (partition, offset) = (record.position.partition, record.position.offset)
        guard let range = left[partition], failure.map({ $0.first[partition] ?? .max > offset }) ?? true else {
          continue
        }
        left[partition] = offset + 1 < range.upperBound ? offset + 1..<range.upperBound : nil
      }
      progress.read += Int64(taken.count)
      progress.replayed += Int64(chosen.count - (failure?.count ?? 0))
      progress.done = progress.total - left.values.reduce(0) { $0 + Int64($1.count) }
      if let failure { throw failure }
      try await each(progress)
    }
    // Of compacted topics the last offsets may have no records any more.
    if !isStopped, !isComplete { (left, progress.done) = ([:], progress.total) }
  }
}
