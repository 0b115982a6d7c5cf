import AccountEvents
import AccountStore
import EventLoop
import Kafka

/// How far partitions are announced, as the store keeps it: claims, and marks that are raised.
extension EventProcessor {
  /// A mark that is to be raised, and how much was said of its partition when the store was told.
  struct RaisedMark {
    let mark: AnnouncedMark
    let partition: AssignedPartition
    let said: Int
  }

  func marksToRaise(of some: some Sequence<AssignedPartition>, at time: Timestamp) -> [RaisedMark] {
    some.compactMap { partition in
      partition.newMark(at: time).map { RaisedMark(mark: $0, partition: partition, said: partition.saidCount) }
    }
  }

  func raised(_ marks: [RaisedMark], _ fenced: [AnnouncedMark]) {
    for one in marks {
      guard fenced.contains(where: { $0.partition == one.mark.partition && $0.claim == one.mark.claim }) else {
        one.partition.raised(one.mark, said: one.said)
        continue
      }
      // Another member has said what we have, and perhaps what is newer, before ours came.
      restate(again: one.partition.takeSaid())
    }
  }

  /// Raises marks where they lie behind; false where the store did not.
  @discardableResult
  func raiseMarks(of some: some Sequence<AssignedPartition>) async -> Bool {
    let time = now()
    let marks = marksToRaise(of: some, at: time)
    if marks.isEmpty { return true }
    calls += 1
    defer {
      calls -= 1
      wake()
    }
    do throws(AccountStoreError) {
      raised(marks, try await store.settle([], announced: marks.map(\.mark), at: time).fenced)
      return true
    } catch {
      note(error)
      return false
    }
  }

  /// The same, and does not wait for it for longer than `limit`.
  func raiseMarks(of some: [AssignedPartition], within limit: Duration) async {
    lastMarks += 1
    Task(executorPreference: Loop.executor) { await self.raiseLastMarks(of: some) }
    await change(within: limit) { lastMarks == 0 }
  }

  private func raiseLastMarks(of some: [AssignedPartition]) async {
    await raiseMarks(of: some)
    lastMarks -= 1
    wake()
  }

  /// Raises the mark of a partition that has gone, unless it was claimed meanwhile: then what was said of it may stand
  /// behind newer news.
  func raiseLastMark(of partition: AssignedPartition) {
    guard partition.life == .gone, partition.newMark(at: now()) != nil else { return }
    Task(executorPreference: Loop.executor) { await self.raiseAtLast(partition) }
  }

  private func raiseAtLast(_ partition: AssignedPartition) async {
    calls += 1
    var failures = 0
    while !isOver, await !raiseMarks(of: [partition]) {
      failures += 1
      await pause(Self.storePace, after: failures)
    }
    calls -= 1
  }

  /// Has the store know that partitions are ours; then their records are begun with. Of one that begins anew, offsets from
  /// `first` on are other records than those that were announced. `extents` is what is known of what they hold.
  func claim(
    _ some: [AssignedPartition], beginningAt first: Int64? = nil, ends extents: [TopicPartition: PartitionExtent] = [:]
  ) {
    if consumer.announce == nil { return some.forEach { own($0) } }
    Task(executorPreference: Loop.executor) { await self.claimAll(some, first, extents) }
  }

  private func claimAll(
    _ some: [AssignedPartition], _ first: Int64?, _ extents: [TopicPartition: PartitionExtent]
  ) async {
    await claim(some, [:])
    var beginnings: [TopicPartition: Int64] = [:]
    for partition in some {
      guard let mark = partition.mark else { continue }
      if let first {
        beginnings[partition.place] = first
        partition.before = partition.before ?? AnnouncedRecords(mark)
      } else if let extent = extents[partition.place], mark.offset > extent.end {
        // Fewer records are there than were announced, and nothing was committed of them: they are others.
        beginnings[partition.place] = extent.first
      }
    }
    if !beginnings.isEmpty { await claim(some.filter { beginnings[$0.place] != nil }, beginnings) }
    for partition in some { own(partition) }
  }

  private func claim(_ some: [AssignedPartition], _ beginnings: [TopicPartition: Int64]) async {
    var claimed: [AssignedPartition] = []
    calls += 1
    let marks = await persistently { () throws(AccountStoreError) in
      // One that went while the store was away is another member's, whose claim this one would end.
      claimed = some.filter { $0.life == .claiming }
      if claimed.isEmpty { return [AnnouncedMark]() }
      let claims = claimed.map { partition in
        PartitionClaim(
          SourcePartition(topic: partition.place.topic, partition: partition.place.partition),
          beginsAnewAt: beginnings[partition.place])
      }
      return try await store.claim(claims, for: consumer.name)
    }
    calls -= 1
    for (partition, mark) in zip(claimed, marks ?? []) { partition.mark = mark }
  }

  private func own(_ partition: AssignedPartition) {
    guard partition.life == .claiming, partition.mark != nil || consumer.announce == nil else { return }
    partition.life = .owned
    partition.announced = partition.mark.map(AnnouncedRecords.init)
    let unclaimed = partition.unclaimed
    partition.unclaimed = []
    begin(unclaimed.filter { $0.state == .queued && $0.lane != nil })
  }
}
