package import AccountEvents
package import AppleID
import EventLoop
package import Kafka
import SQLite
package import TransparencyLog

/// The log and its index, as their one writer has them: what was read is appended once.
///
/// Its calls block. After one that throws, the journal is to be closed and opened anew: it goes on from what is durable
/// then, and what was read since is read again.
package final class AuditJournal {
  /// What became of a batch.
  package struct Taken: Sendable {
    /// What is counted of an entry.
    package enum Label: Sendable, Hashable {
      /// An obligation, by what was found about its signature.
      case obligation(AuditEntry.Obligation.Signature)
      /// An effect.
      case effect
      /// A decision.
      case decision
      /// A gap, by its cause.
      case gap(AuditEntry.Gap.Cause)
    }

    /// How many entries were appended.
    package var appended: [Label: Int] = [:]
    /// How many entries were in the log already.
    package var repeated = 0
    /// The step before which it stopped, because a key of Apple's may be on its way; nil where all is taken.
    package var stop: (step: Int, isKeyUnknown: Bool)?
  }

  /// What readers do not see yet.
  package struct Backlog: Sendable {
    /// Grows with whatever changes it: who is told late of an older one knows it from the newer one.
    package var turn: UInt64 = 0
    /// How many bytes of entries wait to be made durable.
    package var bytes = 0
    /// Whether readers see all that was appended.
    package var isPublished = true
  }

  /// How long commits of the index may wait: more at once change fewer of its pages.
  private static let latestCommit = (entries: 50_000 as UInt64, time: Duration.seconds(5))

  private let log: LogWriter
  private let index: AuditIndex
  private var positions: [TopicPartition: CommittedOffset]
  /// The hash of the last entry that was appended or taken into the index.
  private var lastLeaf: [UInt8]
  private var hasNews = false
  private var waitingBytes = 0
  private var turn: UInt64 = 0
  private var nextCommit = MonotonicTime.now + latestCommit.time

  /// Opens log and index in the directory. Throws `LogError.absent` where no log was begun there, and `.locked` where
  /// another process writes there.
  package init(in directory: String, origin: String) throws {
    log = try LogWriter(opening: directory, origin: origin)
    index = try AuditIndex.open(in: directory)
    (positions, lastLeaf) = (try index.positions(), index.extent.lastLeaf)
  }

  /// How many entries there are, with those that are not durable yet.
  package var size: UInt64 { log.size }

  /// The durable part of the log.
  package var head: TreeHead { log.flushed.head }

  /// The checkpoint that readers see, and its tree; nil before the first.
  package var published: (note: SignedNote, head: TreeHead)? {
    get throws { try log.published.map { ($0, try Checkpoint($0.text).head) } }
  }

  /// What readers do not see yet.
  package var backlog: Backlog {
    Backlog(turn: turn, bytes: waitingBytes, isPublished: waitingBytes == 0 && !log.isUnpublished)
  }

  // MARK: The index

  /// How much of the log is in the index, before anything was appended.
  package var indexed: AuditIndex.Extent { index.extent }

  /// Begins the index anew.
  package func clearIndex() throws {
    try index.clear()
    (positions, lastLeaf) = ([:], [])
  }

  /// Takes durable entries of the log into the index, the first of which has that number.
  package func index(_ entries: [[UInt8]], from first: UInt64) throws {
    for (place, bytes) in entries.enumerated() {
      let entry = try AuditEntry(decoding: bytes)
      _ = try index.add(EntryKey(entry), first + UInt64(place))
      let (origin, offset) = entry.next
      // Letters are read from their beginning, since most of them leave no entry.
      guard AuditedTopic.named(origin.topic)?.isCompacted == false else { continue }
      let place = TopicPartition(origin.topic, origin.partition)
      // The last record need not be the newest one: where a partition's leader changes, its clock does.
      let before = PartitionContinuity(positions[place]).newest ?? 0
      let newest = entry.timeOfRead.map { max($0.milliseconds, before) }
      try set(CommittedOffset(offset, note: newest.map { "\(offset) \($0) \($0)" } ?? ""), of: place)
    }
    guard let last = entries.last else { return }
    lastLeaf = MerkleHash.leaf(last).bytes
    try index.commit(AuditIndex.Extent(size: first + UInt64(entries.count), lastLeaf: lastLeaf))
  }

  /// Where each partition is to be read on.
  package var readingPositions: [TopicPartition: CommittedOffset] { positions }

  private func set(_ position: CommittedOffset, of partition: TopicPartition) throws {
    try index.set(position, of: partition)
    positions[partition] = position
    hasNews = true
  }

  // MARK: Entries

  /// Appends what the steps of a batch come to, from one of them on, but for what is in the log already. With the last
  /// step the positions are noted.
  ///
  /// Where it `awaitsKeys`, it stops before a record whose signature one may be missing for.
  package func take(
    _ batch: AuditReader.Batch, from first: Int, _ translation: RecordTranslation, keys: SigningKeyRing,
    awaitsKeys: Bool, at now: Timestamp
  ) throws -> Taken {
    var taken = Taken()
    turn += 1
    for step in first..<batch.steps.count {
      switch batch.steps[step] {
      case .gap(let gap): try append(.gap(gap), &taken)
      case .record(let record, let topic):
        switch translation.entries(of: record, on: topic, keys: keys, at: now) {
        case .awaitsKey(_, let isKeyUnknown) where awaitsKeys:
          taken.stop = (step, isKeyUnknown)
          return taken
        case .entries(let entries), .awaitsKey(let entries, _):
          for entry in entries { try append(entry, &taken) }
        }
      }
    }
    for (partition, position) in batch.positions { try set(position, of: partition) }
    return taken
  }

  private func append(_ entry: AuditEntry, _ taken: inout Taken) throws {
    guard try index.add(EntryKey(entry), log.size) else {
      taken.repeated += 1
      return
    }
    let bytes = entry.bytes
    _ = try log.append(bytes)
    lastLeaf = MerkleHash.leaf(bytes).bytes
    waitingBytes += bytes.count
    taken.appended[entry.label, default: 0] += 1
    hasNews = true
  }

  // MARK: Checkpoints

  /// Makes all entries durable, and returns the checkpoint that is to be signed; nil where readers see it already.
  ///
  /// The index follows from time to time, and where `isLast`.
  package func flush(isLast: Bool) throws -> Checkpoint? {
    let checkpoint = try log.flush()
    (waitingBytes, turn) = (0, turn + 1)
    // Nothing is appended between the two: what the index names is durable.
    let isDue = isLast || nextCommit <= .now || checkpoint.size - index.extent.size >= Self.latestCommit.entries
    if hasNews, isDue {
      try index.commit(AuditIndex.Extent(size: checkpoint.size, lastLeaf: lastLeaf))
      (hasNews, nextCommit) = (false, .now + Self.latestCommit.time)
    }
    return log.isUnpublished ? checkpoint : nil
  }

  /// Shows a signed checkpoint to readers: the one that was flushed last, or once more the one that they see, with other
  /// signatures. False where it is neither any more.
  package func publish(_ note: SignedNote) throws -> Bool {
    guard note.text == log.flushed.text || note.text == log.published?.text else { return false }
    try log.publish(note)
    turn += 1
    return true
  }

  /// Shows readers what follows from a cosignature.
  package func publish(_ step: WitnessedCheckpoints.Step) throws {
    if let newest = step.newest { _ = try publish(newest) }
    if let witnessed = step.witnessed { try log.publish(witnessed: witnessed) }
  }
}

extension AuditEntry {
  /// The time of the record that was read: one that is unreadable has it as that of its gap.
  fileprivate var timeOfRead: Timestamp? {
    if case .gap(let gap) = self, gap.cause == .unreadable { return gap.time }
    return recordTime
  }

  fileprivate var label: AuditJournal.Taken.Label {
    switch self {
    case .obligation(let obligation): .obligation(obligation.signature)
    case .effect: .effect
    case .decision: .decision
    case .gap(let gap): .gap(gap.cause)
    }
  }
}
