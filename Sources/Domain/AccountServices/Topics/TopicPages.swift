package import AccountEvents
package import EventLoop
package import Kafka

/// All that stands on a topic when reading begins, from its beginning to its end, page by page.
@Loop
package final class TopicPages {
  /// Some records, those of a partition in their order.
  package struct Page {
    /// The records.
    package let records: [ConsumedRecord]
    /// How many records were read by now, and how many there are at most.
    package let done, total: Int64
  }

  private let topic: Topic
  private let limit: Duration
  private let reader: Consumer
  /// Where each partition ends that is not read to its end.
  private var left: [Int32: Int64]
  private let total: Int64
  private var done: Int64 = 0

  private init(
    _ topic: Topic, _ reader: Consumer, _ offsets: [Int32: Range<Int64>], within limit: Duration
  ) throws(KafkaError) {
    (self.topic, self.reader, self.limit) = (topic, reader, limit)
    left = offsets.mapValues(\.upperBound)
    total = offsets.values.reduce(0) { $0 + Int64($1.count) }
    try reader.assign(
      offsets.map { PartitionStart(topic: topic.name, partition: $0.key, at: .offset($0.value.lowerBound)) })
  }

  /// Begins to read. `limit` is how long the cluster may take to say where the topic begins and ends, and then for each
  /// page.
  package static func open(
    _ topic: Topic, _ configuration: KafkaConfiguration, within limit: Duration, log: @escaping KafkaLog
  ) async throws(KafkaError) -> TopicPages {
    let admin = try Admin(configuration, log: log)
    let asked: Result<[Int32: Range<Int64>], KafkaError>
    do throws(KafkaError) { asked = .success(try await offsets(of: topic, admin, within: limit)) } catch {
      asked = .failure(error)
    }
    await admin.close()
    let offsets = try asked.get()
    let reader = try Consumer(configuration, group: nil, log: log)
    do throws(KafkaError) { return try TopicPages(topic, reader, offsets, within: limit) } catch {
      await reader.close()
      throw error
    }
  }

  /// Where each partition begins and ends that holds something.
  private static func offsets(
    of topic: Topic, _ admin: Admin, within limit: Duration
  ) async throws(KafkaError) -> [Int32: Range<Int64>] {
    let ends = try await admin.endOffsets(of: topic.name, within: limit)
    // Kafka's own number for the beginning of what there still is.
    let beginnings = try await admin.offsets(of: topic.name, since: -2, within: limit)
    var offsets: [Int32: Range<Int64>] = [:]
    for (partition, end) in ends {
      let beginning = beginnings[partition] ?? 0
      if beginning < end { offsets[partition] = beginning..<end }
    }
    return offsets
  }

  /// The next page; nil once all of it is read.
  package func next() async throws(KafkaError) -> Page? {
    if left.isEmpty { return nil }
    let alarm = Deadline()
    alarm.onPass { [reader] in Task(executorPreference: Loop.executor) { await reader.close() } }
    alarm.set(.now + limit)
    defer { alarm.invalidate() }
    let some = try await reader.next(upTo: 1024)
    guard !some.isEmpty else {
      throw KafkaError(.timedOut, detail: "\(topic.name) could not be read to its end: nothing came for \(limit)")
    }
    var records: [ConsumedRecord] = []
    for record in some {
      let partition = record.position.partition
      // What came later is not asked for.
      guard let end = left[partition] else { continue }
      if record.position.offset < end { records.append(record) }
      if record.position.offset + 1 >= end { left[partition] = nil }
    }
    done += Int64(records.count)
    return Page(records: records, done: done, total: max(total, done))
  }

  /// Reads no more.
  package func close() async { await reader.close() }
}
