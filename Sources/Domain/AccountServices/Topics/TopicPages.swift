package import AccountEvents
package import EventLoop
package import Kafka

/// Some of what stands on a topic, page by page: by itself all that there is when reading begins.
@Loop
package final class TopicPages {
  /// Some records, those of a partition in their order.
  package struct Page {
    /// The records.
    package let records: [ConsumedRecord]
    /// How many offsets were read by now, and how many there are. Compaction has taken records from many of them.
    package let done, total: Int64
  }

  /// How many records are taken at once.
  package nonisolated static let most = 1024

  private let topic: Topic
  private let limit: Duration
  private let reader: Consumer
  /// What of each partition is not read yet.
  private var left: [Int32: Range<Int64>]
  private let total: Int64
  private var isClosed = false

  private init(
    _ topic: Topic, _ reader: Consumer, _ offsets: [Int32: Range<Int64>], within limit: Duration
  ) throws(KafkaError) {
    (self.topic, self.reader, self.limit) = (topic, reader, limit)
    left = offsets.filter { !$0.value.isEmpty }
    total = left.values.reduce(0) { $0 + Int64($1.count) }
    try reader.assign(
      left.map { PartitionStart(topic: topic.name, partition: $0.key, at: .offset($0.value.lowerBound)) })
  }

  /// Begins to read all that there is. `limit` is how long the cluster may take to say where the topic begins and ends,
  /// and then for each page.
  package static func open(
    _ topic: Topic, _ configuration: KafkaConfiguration, within limit: Duration, log: @escaping KafkaLog
  ) async throws(KafkaError) -> TopicPages {
    let held = try await Admin.run(configuration, log: log) { admin throws(KafkaError) in
      try await admin.held(by: topic.name, within: limit)
    }
    return try await open(topic, held, configuration, within: limit, log: log)
  }

  /// Begins to read these offsets of each partition, none of which is behind its end.
  package static func open(
    _ topic: Topic, _ offsets: [Int32: Range<Int64>], _ configuration: KafkaConfiguration, within limit: Duration,
    log: @escaping KafkaLog
  ) async throws(KafkaError) -> TopicPages {
    let reader = try Consumer(configuration, group: nil, log: log)
    do throws(KafkaError) { return try TopicPages(topic, reader, offsets, within: limit) } catch {
      await reader.close()
      throw error
    }
  }

  /// Calls `body` with each page of what a topic holds by now, for as long as it says so.
  package static func read(
    _ topic: Topic, _ configuration: KafkaConfiguration, within limit: Duration, log: @escaping KafkaLog,
    each body: @Loop (Page) async throws(KafkaError) -> Bool
  ) async throws(KafkaError) {
    let pages = try await open(topic, configuration, within: limit, log: log)
    let result: Result<Void, KafkaError>
    do throws(KafkaError) {
      while let page = try await pages.next() { if try await !body(page) { break } }
      result = .success(())
    } catch { result = .failure(error) }
    await pages.close()
    try result.get()
  }

  /// The next page; nil once all of it is read, or it was closed.
  package func next() async throws(KafkaError) -> Page? {
    if left.isEmpty || isClosed { return nil }
    guard let some = try await reader.next(upTo: Self.most, within: limit) else {
      if isClosed { return nil }
      throw KafkaError(.timedOut, detail: "\(topic.name) could not be read to its end: nothing came for \(limit)")
    }
    var records: [ConsumedRecord] = []
    var finished: Set<TopicPartition> = []
    for record in some {
      let (partition, offset) = (record.position.partition, record.position.offset)
      // What came later is not asked for.
      guard let rest = left[partition] else { continue }
      if offset < rest.upperBound { records.append(record) }
      guard offset + 1 >= rest.upperBound else {
        left[partition] = offset + 1..<rest.upperBound
        continue
      }
      left[partition] = nil
      finished.insert(TopicPartition(topic.name, partition))
    }
    if !left.isEmpty, !finished.isEmpty { try reader.pause(finished) }
    return Page(records: records, done: total - left.values.reduce(0) { $0 + Int64($1.count) }, total: total)
  }

  /// Reads no more.
  package func close() async {
    isClosed = true
    await reader.close()
  }
}

extension Admin {
  /// Which offsets each partition of a topic holds by now; an empty range of one that holds nothing.
  package func held(
    by topic: String, within limit: Duration
  ) async throws(KafkaError) -> [Int32: Range<Int64>] {
    let beginnings = try await beginningOffsets(of: topic, within: limit)
    var held: [Int32: Range<Int64>] = [:]
    for (partition, end) in try await endOffsets(of: topic, within: limit) {
      // One that was added meanwhile holds nothing yet.
      held[partition] = min(beginnings[partition] ?? end, end)..<end
    }
    return held
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
