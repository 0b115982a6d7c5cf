package import AccountEvents
package import EventLoop
package import Kafka

/// Where records come from that are replayed.
@Loop
package protocol ReplaySource: AnyObject {
  /// What stands there, by partition.
  func held() async throws -> [Int32: Range<Int64>]

  /// Where each partition's first record is that was appended at `time` or later, or its end.
  func offsets(since time: Timestamp) async throws -> [Int32: Int64]

  /// Begins to read these offsets.
  func begin(_ offsets: [Int32: Range<Int64>]) async throws

  /// The next of them, those of a partition in their order, and maybe none at the moment; nil once all are read, or it was
  /// closed.
  func next() async throws -> [ConsumedRecord]?

  /// Reads no more.
  func close() async
}

/// A topic on Kafka, read without a group: no member of any notices.
@Loop
package final class TopicSource: ReplaySource {
  private let topic: Topic
  private let configuration: KafkaConfiguration
  private let limit: Duration
  private let log: KafkaLog
  private var pages: TopicPages?

  /// The topic; `limit` is how long the cluster may take for an answer, or be silent.
  package init(_ topic: Topic, _ configuration: KafkaConfiguration, within limit: Duration, log: @escaping KafkaLog) {
    (self.topic, self.configuration, self.limit, self.log) = (topic, configuration, limit, log)
  }

  package func held() async throws -> [Int32: Range<Int64>] {
    try await Admin.run(configuration, log: log) { admin throws(KafkaError) in
      try await admin.held(by: topic.name, within: limit)
    }
  }

  package func offsets(since time: Timestamp) async throws -> [Int32: Int64] {
    try await Admin.run(configuration, log: log) { admin throws(KafkaError) in
      try await admin.offsets(of: topic.name, since: time.milliseconds, within: limit)
    }
  }

  package func begin(_ offsets: [Int32: Range<Int64>]) async throws {
    pages = try await TopicPages.open(topic, offsets, configuration, within: limit, log: log)
  }

  package func next() async throws -> [ConsumedRecord]? { try await pages?.next()?.records }

  package func close() async { await pages?.close() }
}

/// A file of records.
@Loop
package final class FileSource: ReplaySource {
  private let path: String
  private var reader: RecordFileReader?
  private var left: [Int32: Range<Int64>] = [:]

  /// The topic that the records stood on.
  package nonisolated let topic: String
  /// The first line, which tells the file from others that had its name.
  package nonisolated let beginning: [UInt8]

  /// The file; throws where it is none of records.
  package init(_ path: String) throws(RecordFileError) {
    self.path = path
    let reader = try RecordFileReader(path)
    (topic, beginning) = (reader.topic, reader.beginning)
  }

  /// Reads the whole file: what is damaged is found out before anything is done.
  package func held() async throws -> [Int32: Range<Int64>] {
    var held: [Int32: Range<Int64>] = [:]
    try readAll { record in
      let (partition, offset) = (record.position.partition, record.position.offset)
      held[partition] = (held[partition]?.lowerBound ?? offset)..<offset + 1
    }
    return held
  }

  package func offsets(since time: Timestamp) async throws -> [Int32: Int64] {
    var (found, ends): ([Int32: Int64], [Int32: Int64]) = ([:], [:])
    try readAll { record in
      let (partition, offset) = (record.position.partition, record.position.offset)
      ends[partition] = offset + 1
      if found[partition] == nil, let appended = record.timestamp, appended >= time.milliseconds {
        found[partition] = offset
      }
    }
    return ends.merging(found) { $1 }
  }

  package func begin(_ offsets: [Int32: Range<Int64>]) async throws {
    (reader, left) = (try RecordFileReader(path), offsets)
  }

  package func next() async throws -> [ConsumedRecord]? {
    // A page of a file that lies elsewhere takes no turn of the loop: whoever wants to stop has to be heard.
    await Loop.nextTurn()
    let page = try reader?.next(upTo: TopicPages.most)
    return page?.filter { left[$0.position.partition]?.contains($0.position.offset) ?? false }
  }

  package func close() async { reader = nil }

  private func readAll(_ body: (ConsumedRecord) -> Void) throws(RecordFileError) {
    let reader = try RecordFileReader(path)
    while let page = try reader.next(upTo: TopicPages.most) { page.forEach(body) }
  }
}
