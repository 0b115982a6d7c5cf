import EventLoop
import TestSupport
import Testing

@testable import Kafka

/// Headers are left where librdkafka has them, and yet are there for as long as their record is.
@Loop @Suite(.timeLimit(.minutes(30))) struct UnreadHeadersTests {
  private let cluster: Cluster
  private let consumer: Consumer

  /// A consumer that keeps three messages at most.
  init() async throws {
    cluster = try Cluster.embedded()
    let topic = try await cluster.makeTopic(1)
    try await cluster.withProducer { producer in
      for number in 0..<8 as Range<UInt8> {
        _ = try await producer.send(
          KafkaRecord(topic: topic, key: nil, value: [number], headers: Self.headers(of: number)))
      }
    }
    consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    consumer.unreadHeaders = UnreadHeaders(limit: 3)
    try consumer.assign([PartitionStart(topic: topic, partition: 0, at: .beginning)])
  }

  @Test func recordsThatAreHeldWhileOthersAreReadKeepTheirHeadersAndNoMessage() async throws {
    let records = try await consumer.take(8)
    #expect(consumer.unreadHeaders.held == (messages: 3, copies: 5))
    expectHeaders(of: records)
    await consumer.close()
  }

  @Test func whatIsLetGoIsKeptNowhere() async throws {
    var records = try await consumer.take(5)
    records.removeAll { [0, 3].contains($0.position.offset) }
    #expect(consumer.unreadHeaders.held == (messages: 2, copies: 1))
    records += try await consumer.take(3)
    #expect(consumer.unreadHeaders.held == (messages: 3, copies: 3))
    expectHeaders(of: records)
    records = []
    #expect(consumer.unreadHeaders.held == (messages: 0, copies: 0))
    await consumer.close()
  }

  @Test func headersOutliveTheConsumer() async throws {
    let records = try await consumer.take(8)
    await consumer.close()
    #expect(consumer.unreadHeaders.held == (messages: 0, copies: 8))
    expectHeaders(of: records)
  }

  @Test func recordsAreTheSameWhereverTheirHeadersAre() async throws {
    let records = try await consumer.take(8)
    for record in records {
      let other = ConsumedRecord(
        topic: record.topic, position: record.position, key: record.key, value: record.value, headers: record.headers,
        timestamp: record.timestamp)
      let without = ConsumedRecord(
        topic: record.topic, position: record.position, key: record.key, value: record.value, headers: [],
        timestamp: record.timestamp)
      #expect(other == record && other.hashValue == record.hashValue && without != record)
    }
    await consumer.close()
  }

  @Test func recordsAreLetGoOnAnyThread() async throws {
    let records = try await consumer.take(8)
    await withTaskGroup(of: [KafkaHeader].self) { group in
      for record in records { group.addTask { record.headers } }
      for await headers in group { #expect(headers.count == 2) }
    }
    await consumer.close()
    expectHeaders(of: records)
  }

  private nonisolated static func headers(of number: UInt8) -> [KafkaHeader] {
    [KafkaHeader("number", [number]), KafkaHeader("none", nil as [UInt8]?)]
  }

  private func expectHeaders(of records: [ConsumedRecord], at location: SourceLocation = #_sourceLocation) {
    for record in records {
      #expect(record.headers == Self.headers(of: record.value?.first ?? 255), sourceLocation: location)
    }
  }
}
