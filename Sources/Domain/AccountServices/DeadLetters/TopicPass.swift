import AccountEvents
import EventLoop
import Kafka

/// Reads a topic from its beginning to where it ended when the reading began.
@Loop
struct TopicPass {
  /// How many records are taken at once.
  static let batch = 512

  let configuration: KafkaConfiguration
  /// How long the cluster may say nothing.
  let limit: Duration
  let log: KafkaLog

  /// Calls `body` with the records, some at a time and those of a partition in their order, until it says that it has
  /// enough, or the topic's end is reached. It may be told of later ones, too.
  func read(
    _ topic: Topic, each body: @Loop ([ConsumedRecord]) async throws(KafkaError) -> Bool
  ) async throws(KafkaError) {
    var left = try await Admin.run(configuration, log: log) { admin throws(KafkaError) in
      let ends = try await admin.endOffsets(of: topic.name, within: limit)
      // A partition of which nothing is left has an end all the same: nobody ever reads up to it.
      let firsts = try await admin.offsets(of: topic.name, since: 0, within: limit)
      return ends.filter { (firsts[$0.key] ?? 0) < $0.value }
    }
    guard !left.isEmpty else { return }
    try await Consumer.run(configuration, log: log) { reader throws(KafkaError) in
      try reader.assign(left.keys.map { PartitionStart(topic: topic.name, partition: $0, at: .beginning) })
      while !left.isEmpty {
        guard let records = try await reader.next(upTo: Self.batch, within: limit) else {
          throw KafkaError(.timedOut, detail: "\(topic) could not be read to its end: nothing came for \(limit)")
        }
        for record in records {
          let partition = record.position.partition
          if let end = left[partition], record.position.offset + 1 >= end { left[partition] = nil }
        }
        guard try await body(records) else { return }
      }
    }
  }
}

extension Consumer {
  /// The next records; nil where none came in time, after which the reader is closed.
  func next(upTo count: Int, within limit: Duration) async throws(KafkaError) -> [ConsumedRecord]? {
    let alarm = Deadline()
    alarm.onPass { Task(executorPreference: Loop.executor) { await self.close() } }
    alarm.set(.now + limit)
    defer { alarm.invalidate() }
    let records = try await next(upTo: count)
    return records.isEmpty ? nil : records
  }
}
