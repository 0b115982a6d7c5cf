import AccountEvents
import EventLoop
import Kafka
import TestSupport
import Testing

/// Reads the topics from their beginnings, as somebody downstream.
@Loop
final class TopicReader {
  /// How many partitions each topic has.
  nonisolated static let partitions: Int32 = 3

  private let consumer: Consumer
  private var records: [ConsumedRecord] = []

  /// Runs `body` with a reader.
  static func run<Value>(
    _ brokers: String, _ body: @Loop (TopicReader) async throws -> Value
  ) async throws -> Value {
    let reader = try TopicReader(brokers)
    let result: Result<Value, any Error>
    do { result = .success(try await body(reader)) } catch { result = .failure(error) }
    await reader.consumer.close()
    return try result.get()
  }

  private init(_ brokers: String) throws {
    consumer = try Consumer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), group: nil, log: { _ in })
    let topics = [Topic.accountEvents, .quarantine, .signingKeys]
    try consumer.assign(
      topics.flatMap { topic in
        (0..<Self.partitions).map { PartitionStart(topic: topic.name, partition: $0, at: .beginning) }
      })
  }

  /// Waits for the record of an event.
  func record(of event: String) async throws -> ConsumedRecord { try await record("ce_id", event) }

  /// Waits for the record that a notification became.
  func record(with jws: String) async throws -> ConsumedRecord { try await record("apple-jws", jws) }

  private func record(_ header: String, _ text: String) async throws -> ConsumedRecord {
    while true {
      if let found = records.first(where: { $0.text(of: header) == text }) { return found }
      let more = try await consumer.next(upTo: 100)
      try #require(!more.isEmpty, "the test was cancelled while it waited for the record with \(header) \(text)")
      records += more
    }
  }
}

extension ConsumedRecord {
  /// The value of a header; nil where there is none of that name.
  func text(of header: String) -> String? {
    headers.first { $0.name == header }?.value.map { String(decoding: $0, as: UTF8.self) }
  }
}

extension EmbeddedCluster {
  /// A cluster with the topics.
  static func withTopics() throws -> EmbeddedCluster {
    let cluster = try EmbeddedCluster(brokers: 1)
    for topic in [Topic.accountEvents, .quarantine, .signingKeys] {
      try cluster.createTopic(topic.name, partitions: Int(TopicReader.partitions))
    }
    return cluster
  }
}

extension RealBroker {
  /// The broker that the tests share, with the topics.
  static func withTopics() async throws -> RealBroker { try await withTopics(shared()) }

  /// The broker, once it has the topics.
  @Loop
  static func withTopics(_ broker: RealBroker) async throws -> RealBroker {
    let admin = try Admin(
      try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), log: { _ in })
    let topics = [Topic.accountEvents, .quarantine, .signingKeys]
    _ = try await admin.createTopics(
      topics.map { NewTopic($0.name, partitions: Int(TopicReader.partitions), replicationFactor: 1) },
      within: .seconds(300))
    for topic in topics { _ = try await admin.awaitTopic(topic.name, within: .seconds(300)) }
    await admin.close()
    return broker
  }
}
