import AccountServices
package import EventLoop
package import Kafka
import Testing

/// A member of the one group of a `MemoryCluster`, which gets its partitions when a test says so.
@Loop
package final class MemorySource: EventSource {
  private let cluster: MemoryCluster
  private var events: [GroupEvent] = []
  private var positions: [TopicPartition: Int64] = [:]
  package private(set) var paused: Set<TopicPartition> = []
  package private(set) var leaving: Set<TopicPartition> = []
  private var waiter: CheckedContinuation<Void, Never>?
  /// How often it was woken: whoever has looked before it waits says at which count that was.
  private var wakes = 0
  package private(set) var isClosed = false
  /// What goes on between the commit of partitions that go and their going.
  package var whileReleasing: @Loop () async -> Void = {}
  /// How many commits were asked for.
  package private(set) var commits = 0
  /// Why the cluster does not say what partitions hold; nil where it does.
  package var silence: KafkaError?
  /// Partitions of which nothing is fetched, though the cluster says what they hold.
  package var withheld: Set<TopicPartition> = []
  /// Partitions without a leader.
  package var leaderless: Set<TopicPartition> = []
  /// What keeps the topics from being read.
  package var topicsFault: KafkaError?
  package var isMember = false
  /// Where reading was told to go on.
  package private(set) var seeks: [[TopicPartition: Int64]] = []
  /// Why it cannot go on from elsewhere; nil where it can.
  package var seekFault: KafkaError?
  /// Where it goes after it was told to go on from elsewhere, once; nil where it stays there.
  package var placeAfterSeek: Int64?
  /// Why a commit fails; nil where it does not.
  package var fault: KafkaError?
  /// Whether a partition begins anew, so that the group goes back.
  package var mayGoBack = false
  /// Why it cannot go on; nil while it can.
  package var end: KafkaError? { didSet { wake() } }
  /// The most records that are handed over at once.
  package var most = Int.max

  package init(_ cluster: MemoryCluster) { self.cluster = cluster }

  package var partitions: Set<TopicPartition> { Set(positions.keys) }

  /// The group gives these partitions to us.
  package func assign(_ partitions: Set<TopicPartition>) {
    isMember = true
    for partition in partitions {
      positions[partition] = cluster.committed[partition] ?? cluster.extent(of: partition).first
    }
    tell(.assigned(partitions))
  }

  /// The group wants these partitions back.
  package func revoke(_ partitions: Set<TopicPartition>) {
    leaving.formUnion(partitions)
    tell(.revoked(partitions))
  }

  /// The group has given these partitions to somebody else.
  package func lose(_ partitions: Set<TopicPartition>) {
    leaving.subtract(partitions)
    for partition in partitions { positions[partition] = nil }
    tell(.lost(partitions))
  }

  /// There may be new records.
  package func wake() {
    wakes += 1
    waiter?.resume()
    waiter = nil
  }

  private func tell(_ event: GroupEvent) {
    events.append(event)
    wake()
  }

  package func nextEvent(upTo limit: Int) async throws(KafkaError) -> GroupEvent? {
    while !isClosed, !Task.isCancelled {
      let seen = wakes
      if !events.isEmpty { return events.removeFirst() }
      if let end { throw end }
      let records = take(min(limit, most))
      if !records.isEmpty { return .records(records) }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          // A task that does not prefer the loop's executor has given way since it looked.
          if wakes != seen || Task.isCancelled { return continuation.resume() }
          waiter = continuation
        }
      } onCancel: {
        Task { @Loop in wake() }
      }
    }
    return nil
  }

  private func take(_ limit: Int) -> [ConsumedRecord] {
    // As librdkafka: nothing is read while partitions are handed over.
    guard leaving.isEmpty else { return [] }
    var taken: [ConsumedRecord] = []
    for (partition, position) in positions.sorted(by: { $0.key < $1.key })
    where !paused.contains(partition) && !withheld.contains(partition) {
      let (some, next) = cluster.read(partition, from: position, upTo: limit - taken.count)
      positions[partition] = next
      taken += some
    }
    return taken
  }

  package func pause(_ partitions: Set<TopicPartition>) throws(KafkaError) { paused.formUnion(partitions) }

  package func resume(_ partitions: Set<TopicPartition>) throws(KafkaError) {
    paused.subtract(partitions)
    wake()
  }

  package func commit(_ offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError) {
    commits += 1
    if let fault { throw fault }
    for (partition, offset) in offsets {
      guard positions[partition] != nil else { throw KafkaError(.groupChanged, detail: "\(partition) is not ours") }
      let isBack = offset.offset < cluster.committed[partition] ?? 0
      #expect(!isBack || mayGoBack, "goes back on \(partition)")
      cluster.commitments[partition] = offset
    }
  }

  package func release(
    committing offsets: [TopicPartition: CommittedOffset], within limit: Duration
  ) async throws(KafkaError) {
    // As the real one: they go, whatever becomes of the commit.
    defer {
      for partition in leaving { positions[partition] = nil }
      leaving = []
      wake()
    }
    try await commit(offsets, within: limit)
    await whileReleasing()
  }

  package func seek(to offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError) {
    if let seekFault { throw seekFault }
    seeks.append(offsets)
    for (partition, offset) in offsets where positions[partition] != nil {
      positions[partition] = placeAfterSeek ?? offset
    }
    placeAfterSeek = nil
    wake()
  }

  /// Where it is.
  package func position(of partition: TopicPartition) -> Int64? { positions[partition] }

  /// Brings records a second time.
  package func bringAgain(_ partition: TopicPartition, from offset: Int64) {
    positions[partition] = offset
    wake()
  }

  package func commitments(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset] {
    if let silence { throw silence }
    return cluster.commitments.filter { partitions.contains($0.key) }
  }

  package func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent] {
    if let silence { throw silence }
    return Dictionary(
      uniqueKeysWithValues: partitions.map { ($0.key, cluster.extent(of: $0.key, newerThan: $0.value)) })
  }

  package func checkTopics(within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> {
    if let topicsFault { throw topicsFault }
    return leaderless
  }

  package func knownEnd(of partition: TopicPartition) -> Int64? {
    // As librdkafka: by what was fetched last; nothing, where that was refused.
    if withheld.contains(partition) { return nil }
    if paused.contains(partition) { return positions[partition] }
    return cluster.records[partition] == nil ? nil : cluster.extent(of: partition).end
  }

  package func close() async {
    isClosed = true
    wake()
  }
}
