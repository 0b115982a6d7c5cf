import AccountServices
package import EventLoop
package import Kafka

/// Reads a `MemoryCluster` without a group.
@Loop
package final class MemoryPartitionSource: PartitionSource {
  private let cluster: MemoryCluster
  private var positions: [TopicPartition: Int64] = [:]
  private let deadline = Deadline()
  private var waiter: CheckedContinuation<Void, Never>?
  /// How often it was woken: whoever has looked before it waits says at which count that was.
  private var wakes = 0
  /// The most records that are handed over at once.
  package var most = Int.max
  /// Why the cluster does not say what partitions hold; nil where it does.
  package var silence: KafkaError?
  /// What is said once in place of the next records.
  package var fault: KafkaError?
  /// What is waited for before it is handed over what partitions held when that was asked.
  package var delay: @Loop () async -> Void = {}
  /// What is waited for before records are handed over.
  package var gate: @Loop () async -> Void = {}
  /// What is waited for before it is closed.
  package var closing: @Loop () async -> Void = {}
  /// How often the next records were asked for.
  package private(set) var questions = 0
  /// How often partitions were assigned.
  package private(set) var assignments = 0
  package private(set) var isClosed = false

  package init(_ cluster: MemoryCluster) { self.cluster = cluster }

  isolated deinit { deadline.invalidate() }

  /// Where it is.
  package func position(of partition: TopicPartition) -> Int64? { positions[partition] }

  /// Brings records a second time.
  package func bringAgain(_ partition: TopicPartition, from offset: Int64) { positions[partition] = offset }

  package func partitions(of topic: String, within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> {
    if let silence { throw silence }
    let found = Set(cluster.records.keys.filter { $0.topic == topic })
    if found.isEmpty { throw KafkaError(.unknownTopic, detail: topic) }
    return found
  }

  package func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent] {
    if let silence { throw silence }
    let extents = partitions.map { ($0.key, cluster.extent(of: $0.key, newerThan: $0.value)) }
    await delay()
    return Dictionary(uniqueKeysWithValues: extents)
  }

  package func assign(_ partitions: [PartitionStart]) throws(KafkaError) {
    assignments += 1
    positions = [:]
    for start in partitions {
      let place = TopicPartition(start.topic, start.partition)
      positions[place] =
        switch start.place {
        case .beginning: cluster.extent(of: place).first
        case .end: cluster.extent(of: place).end
        case .offset(let number): number
        }
    }
  }

  package func next(upTo limit: Int, until time: MonotonicTime) async throws(KafkaError) -> [ConsumedRecord] {
    questions += 1
    await gate()
    while !isClosed, !Task.isCancelled {
      if let fault {
        self.fault = nil
        throw fault
      }
      let seen = wakes
      let records = take(min(limit, most))
      if !records.isEmpty || time <= .now { return records }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          if wakes != seen || Task.isCancelled { return continuation.resume() }
          waiter = continuation
          deadline.onPass { [weak self] in self?.wake() }
          deadline.set(time)
        }
      } onCancel: {
        Task { @Loop in wake() }
      }
    }
    return []
  }

  /// There may be new records.
  package func wake() {
    wakes += 1
    waiter?.resume()
    waiter = nil
  }

  private func take(_ limit: Int) -> [ConsumedRecord] {
    var taken: [ConsumedRecord] = []
    for (partition, position) in positions.sorted(by: { $0.key < $1.key }) {
      let (some, next) = cluster.read(partition, from: position, upTo: limit - taken.count)
      positions[partition] = next
      taken += some
    }
    return taken
  }

  package func knownEnd(of partition: TopicPartition) -> Int64? {
    cluster.records[partition] == nil ? nil : cluster.extent(of: partition).end
  }

  package func close() async {
    isClosed = true
    wake()
    await closing()
  }
}
