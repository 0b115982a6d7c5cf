import AccountEvents
import AccountServices
import ConsumerSupport
import EventLoop
import Glibc
import Kafka

/// The events that the consumer processes, and a file that says how far it is.
@Loop
final class FileSource: EventSource {
  /// When the broker appended the records: behind the times of all events.
  private nonisolated static let appended: Int64 = 1_750_000_000_000

  private let events: [AccountEvent]
  private let file: String
  private let steps: Steps
  private var isAssigned = false
  private var position: Int
  private var waiter: CheckedContinuation<Void, Never>?
  private let partition = TopicPartition.events(0)

  init(_ events: [AccountEvent], in directory: String, _ steps: Steps) {
    self.events = events
    (file, self.steps) = ("\(directory)/committed", steps)
    position =
      unsafe fopen(file, "r").map { handle in
        var number: CLong = 0
        var text = [CChar](repeating: 0, count: 32)
        if unsafe fgets(&text, 32, handle) != nil { number = unsafe strtol(text, nil, 10) }
        unsafe fclose(handle)
        return number
      } ?? 0
  }

  var isReadToItsEnd: Bool { isAssigned && position == events.count }

  func nextEvent(upTo limit: Int) async throws(KafkaError) -> GroupEvent? {
    if !isAssigned {
      isAssigned = true
      return .assigned([partition])
    }
    if position < events.count {
      // Three at a time, so that what comes finds something under way.
      let records = events.enumerated().dropFirst(position).prefix(3).map { offset, event in
        let record = KafkaRecord.of(event)
        return ConsumedRecord(
          topic: record.topic, position: KafkaPosition(partition: 0, offset: Int64(offset)), key: record.key,
          value: record.value, headers: record.headers, timestamp: Self.appended)
      }
      position += records.count
      return .records(records)
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled { return continuation.resume() }
        waiter = continuation
      }
    } onCancel: {
      Task { @Loop in waiter?.resume() }
    }
    return nil
  }

  func pause(_ partitions: Set<TopicPartition>) throws(KafkaError) {}

  func resume(_ partitions: Set<TopicPartition>) throws(KafkaError) {}

  func commit(_ offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError) {
    steps.step()
    let new = "\(file).new"
    File.append("\(offsets[partition]?.offset ?? 0)\n", to: new)
    unsafe rename(new, file)
    steps.step()
  }

  func release(committing offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError) {
    try await commit(offsets, within: limit)
  }

  func seek(to offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError) {
    throw KafkaError(.unsupported, detail: "a file does not begin anew")
  }

  func commitments(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset] { [partition: CommittedOffset(Int64(position))] }

  func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent] {
    [partition: PartitionExtent(first: 0, end: Int64(events.count), firstNewer: [:])]
  }

  func checkTopics(within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> { [] }

  var isMember: Bool { isAssigned }

  func knownEnd(of partition: TopicPartition) -> Int64? { Int64(events.count) }

  func close() async {}
}
