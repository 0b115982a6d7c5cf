import EventLoop
import Kafka
import TestSupport
import Testing

/// What a reader and an operator can do with partitions, on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct ReadingTests {
  private nonisolated static let patience = Duration.seconds(300)

  @Test func aPausedPartitionGoesOnWhereItStopped() async throws {
    let (cluster, topic) = try await topic(partitions: 2, records: 20)
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    let (paused, other) = (TopicPartition(topic, 0), TopicPartition(topic, 1))
    try consumer.assign([paused, other].map { PartitionStart(topic: topic, partition: $0.partition, at: .beginning) })
    var records = try await consumer.take(1)
    while !records.contains(where: { $0.position.partition == 0 }) { records += try await consumer.take(1) }
    try consumer.pause([paused])
    while records.count(where: { $0.position.partition == 1 }) < 10 { records += try await consumer.take(1) }
    #expect(records.count < 20)
    try consumer.resume([paused])
    records += try await consumer.take(20 - records.count)
    for partition in 0...1 as ClosedRange<Int32> {
      #expect(records.map(\.position).filter { $0.partition == partition }.map(\.offset) == Array(0..<10))
    }
    await consumer.close()
  }

  @Test func knowsWhereItIsAndHowFarTheEndIs() async throws {
    let (cluster, topic) = try await topic(partitions: 1, records: 10)
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    let partition = TopicPartition(topic, 0)
    #expect(consumer.knownEnd(of: partition) == nil)
    try consumer.assign([PartitionStart(topic: topic, partition: 0, at: .offset(2))])
    #expect(try consumer.lag(of: partition) == nil)
    _ = try await consumer.take(3)
    #expect(try consumer.positions(of: [partition]) == [partition: 5])
    #expect(consumer.knownEnd(of: partition) == 10)
    #expect(try consumer.lag(of: partition) == 5)
    try await consumer.seek(to: [partition: 8], within: Self.patience)
    #expect(try await consumer.take(2).map(\.position.offset) == [8, 9])
    #expect(try consumer.lag(of: partition) == 0)
    try await consumer.seek(to: [partition: 0], within: Self.patience)
    #expect(try await consumer.take(1).map(\.position.offset) == [0])
    await consumer.close()
    await #expect(throws: KafkaError.self) { try await consumer.seek(to: [partition: 0], within: Self.patience) }
  }

  @Test func aMemberReadsOnFromWhereItSeeksTo() async throws {
    let (cluster, topic) = try await topic(partitions: 1, records: 10)
    let consumer = try Consumer(
      cluster.configuration(),
      group: GroupMembership(ConsumerGroup("seeks-\(topic)"), instance: nil, handover: Self.patience), log: { _ in })
    try consumer.subscribe(to: [topic])
    let partition = TopicPartition(topic, 0)
    #expect(try await consumer.nextEvent(upTo: 1) == .assigned([partition]))
    // At once, while librdkafka still asks where the group is.
    try await consumer.seek(to: [partition: 7], within: Self.patience)
    guard case .records(let records) = try await consumer.nextEvent(upTo: 1) else {
      Issue.record("no records")
      return
    }
    #expect(records.map(\.position.offset) == [7])
    try await consumer.commit([partition: 8], within: Self.patience)
    #expect(try await consumer.commitments(of: [partition], within: Self.patience) == [partition: 8])
    await consumer.close()
  }

  @Test func beginsAtATime() async throws {
    let (cluster, topic) = try await topic(partitions: 2, records: 40)
    let records = try await cluster.read(40, from: topic, partitions: 2)
    let times = records.compactMap(\.timestamp).sorted()
    let admin = try Admin(cluster.configuration(), log: { _ in })
    for time in [0, times[10], times[30], times[39] + 1] {
      var expected: [Int32: Int64] = [0: 20, 1: 20]
      for record in records where (record.timestamp ?? 0) >= time {
        expected[record.position.partition] = min(expected[record.position.partition] ?? 0, record.position.offset)
      }
      #expect(try await admin.offsets(of: topic, since: time, within: Self.patience) == expected)
    }
    await admin.close()
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    try await consumer.assign(topic, since: times[20], within: Self.patience)
    let wanted = records.filter { ($0.timestamp ?? 0) >= times[20] }
    #expect(Set(try await consumer.take(wanted.count)) == Set(wanted))
    await consumer.close()
  }

  @Test func anOperatorDeletesRecords() async throws {
    let (cluster, topic) = try await topic(partitions: 1, records: 10)
    let admin = try Admin(cluster.configuration(), log: { _ in })
    let first = try await admin.deleteRecords(before: [TopicPartition(topic, 0): 6], within: Self.patience)
    #expect(first == [TopicPartition(topic, 0): 6])
    #expect(try await cluster.read(4, from: topic).map(\.position.offset) == [6, 7, 8, 9])
    let error = await #expect(throws: KafkaError.self) {
      try await admin.deleteRecords(before: [TopicPartition(topic, 0): 11], within: Self.patience)
    }
    #expect(error?.code == .offsetOutOfRange)
    await admin.close()
  }

  @Test func anOperatorSeesHowATopicIsSet() async throws {
    let broker = try await RealBroker.shared()
    let settings = ["retention.ms": "1209600000", "cleanup.policy": "compact,delete", "min.insync.replicas": "1"]
    try await makeRealTopic(NewTopic("set-so", partitions: 3, replicationFactor: 1, settings: settings), on: broker)
    let admin = try Admin(Cluster.real(broker).configuration(), log: { _ in })
    let found = try await admin.settings(of: "set-so", within: Self.patience)
    #expect(found.filter { settings.keys.contains($0.key) } == settings)
    #expect(found["max.message.bytes"] != nil)
    let topics = try await admin.describeTopics(within: Self.patience)
    #expect(topics.first { $0.name == "set-so" }?.partitions.map(\.replicas) == [1, 1, 1])
    let error = await #expect(throws: KafkaError.self) {
      try await admin.settings(of: "no-such-topic", within: Self.patience)
    }
    #expect(error?.code == .unknownTopic)
    await admin.close()
  }

  /// A topic with as many records, one after another in each partition.
  private func topic(partitions: Int, records: Int) async throws -> (Cluster, String) {
    let cluster = try await Cluster.real(.shared())
    let topic = try await cluster.makeTopic(partitions)
    try await cluster.withProducer { producer in
      for number in 0..<records {
        let partition = Int32(number % partitions)
        _ = try await producer.send(KafkaRecord(topic: topic, partition: partition, key: nil, value: [UInt8(number)]))
      }
    }
    return (cluster, topic)
  }
}
