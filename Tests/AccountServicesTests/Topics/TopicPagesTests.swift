import AccountEvents
import AccountServices
import EventLoop
import Kafka
import TestSupport
import Testing

/// Topics that are read from their beginning to their end, on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct TopicPagesTests {
  private nonisolated static let patience = Duration.seconds(300)

  @Test func readsWhatThereStillIsAndNothingThatComesLater() async throws {
    let broker = try await RealBroker.shared()
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)])
    let admin = try Admin(configuration, log: { _ in })
    let topic = Topic(name: "topic-pages-\(UInt64.random(in: 0...UInt64.max))")
    _ = try await admin.createTopics(
      [NewTopic(topic.name, partitions: 3, replicationFactor: 1, settings: [:])], within: Self.patience)
    _ = try await admin.awaitTopic(topic.name, within: Self.patience)
    let producer = try Producer(configuration, deadline: Self.patience, log: { _ in })
    func send(_ partition: Int32, _ values: ClosedRange<UInt8>) async throws {
      for value in values {
        _ = try await producer.send(
          KafkaRecord(topic: topic.name, partition: partition, key: [value], value: [value]))
      }
    }
    func open() async throws -> TopicPages {
      try await TopicPages.open(topic, configuration, within: Self.patience, log: { _ in })
    }
    let empty = try await open()
    let nothing = try await empty.next()
    #expect(nothing == nil)
    await empty.close()

    // One partition has lost its beginning, and one all that it had: neither is waited for.
    try await send(0, 1...5)
    try await send(1, 11...13)
    _ = try await admin.deleteRecords(
      before: [TopicPartition(topic.name, 0): 2, TopicPartition(topic.name, 1): 3], within: Self.patience)
    let pages = try await open()
    try await send(0, 6...7)
    try await send(1, 14...14)
    var values: [UInt8] = []
    var last: TopicPages.Page?
    while let page = try await pages.next() {
      values += page.records.compactMap { $0.value?.first }
      last = page
    }
    await pages.close()
    #expect(values == [3, 4, 5] && last?.done == 3 && last?.total == 3)
    await producer.close(within: .seconds(10))
    await admin.close()
  }
}
