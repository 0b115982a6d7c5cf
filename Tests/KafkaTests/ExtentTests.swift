import CLibrdkafka
import EventLoop
import Kafka
import TestSupport
import Testing

/// What a member can ask of its partitions and its group, on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct ExtentTests {
  private nonisolated static let patience = Duration.seconds(300)

  @Test func whatPartitionsHoldIsAnsweredTogetherWithTheFirstRecordThatIsNewer() async throws {
    let cluster = try await Cluster.real(.shared())
    let topic = try await cluster.makeTopic(2)
    try await cluster.withProducer { producer in
      for _ in 0..<5 {
        _ = try await producer.send(KafkaRecord(topic: topic, partition: 0, key: nil, value: [1]))
      }
    }
    let records = try await cluster.read(5, from: topic)
    let times = records.compactMap(\.timestamp)
    let admin = try Admin(cluster.configuration(), log: { _ in })
    let (first, empty) = (TopicPartition(topic, 0), TopicPartition(topic, 1))
    _ = try await admin.deleteRecords(before: [first: 1], within: Self.patience)
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    let asked: Set = [times[0] - 1, times[2], times[4]]
    var newer: [Int64: Int64] = [:]
    for time in asked {
      newer[time] = records.first { ($0.timestamp ?? 0) > time && $0.position.offset > 0 }?.position.offset
    }
    let extents = try await consumer.extents(of: [first: asked, empty: [times[0]]], within: Self.patience)
    #expect(extents[first] == PartitionExtent(first: 1, end: 5, firstNewer: newer))
    let last = try await consumer.extents(of: [first: [.max]], within: Self.patience)
    #expect(last[first] == PartitionExtent(first: 1, end: 5, firstNewer: [:]))
    #expect(extents[empty] == PartitionExtent(first: 0, end: 0, firstNewer: [:]))
    let plain = try await consumer.extents(of: [first: []], within: Self.patience)
    #expect(plain == [first: PartitionExtent(first: 1, end: 5, firstNewer: [:])])
    await consumer.close()
    await admin.close()
  }

  /// librdkafka 2.0 never frees a reader of partitions that are gone.
  @Test func aReaderEndsThoughItsPartitionsAreGone() async throws {
    let broker = try await RealBroker.shared()
    let cluster = Cluster.real(broker)
    let topic = try await cluster.makeTopic(4)
    try await cluster.withProducer { producer in
      for partition in 0..<4 as Range<Int32> {
        _ = try await producer.send(KafkaRecord(topic: topic, partition: partition, key: nil, value: [1]))
      }
    }
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    try consumer.assign((0..<4).map { PartitionStart(topic: topic, partition: $0, at: .beginning) })
    // It has seen them, or it would only say that it does not know them.
    var read = 0
    try await until(within: Self.patience) {
      read += try await consumer.next(upTo: 4, until: .now + .seconds(1)).count
      return read == 4
    }
    try await broker.deleteTopic(topic)
    try await makeRealTopic(NewTopic(topic, partitions: 1, replicationFactor: 1), on: broker)
    try await until(within: Self.patience) {
      do throws(KafkaError) {
        _ = try await consumer.next(upTo: 1, until: .now + .milliseconds(50))
        return false
      } catch {
        return error.detail.contains("partition is no longer available")
      }
    }
    await consumer.close()
  }

  @Test func whatIsCommittedBesideAnOffsetIsFoundByTheNextMember() async throws {
    let cluster = try await Cluster.real(.shared())
    let topic = try await cluster.makeTopic(2)
    let group = ConsumerGroup("notes-\(topic)")
    let (first, second) = (TopicPartition(topic, 0), TopicPartition(topic, 1))
    let member = try GroupMember(cluster, group, topic)
    try await until(within: Self.patience) { member.partitions.count == 2 }
    try await member.consumer.commit(
      [first: CommittedOffset(7, note: "newest=1800000000000, größer"), second: 3], within: Self.patience)
    await member.stop()
    await member.consumer.close()
    let next = try GroupMember(cluster, group, topic)
    let committed = try await next.consumer.commitments(of: [first, second], within: Self.patience)
    #expect(committed == [first: CommittedOffset(7, note: "newest=1800000000000, größer"), second: 3])
    await next.stop()
    await next.consumer.close()
  }

  @Test func whoGetsNoPartitionIsAMemberAllTheSame() async throws {
    let cluster = try await Cluster.real(.shared())
    let topic = try await cluster.makeTopic(1)
    let group = ConsumerGroup("spare-\(topic)")
    let first = try GroupMember(cluster, group, topic)
    #expect(!first.consumer.isMember)
    try await until(within: Self.patience) { first.partitions.count == 1 }
    #expect(first.consumer.isMember)
    let second = try GroupMember(cluster, group, topic)
    try await until(within: Self.patience) { second.consumer.isMember }
    #expect(first.partitions.count + second.partitions.count == 1)
    for member in [first, second] {
      await member.stop()
      await member.consumer.close()
      #expect(!member.consumer.isMember)
    }
  }

  @Test func aTopicThatIsNotThereIsNamedByTheCheck() async throws {
    let cluster = try await Cluster.real(.shared())
    let topic = try await cluster.makeTopic(1)
    let good = try GroupMember(cluster, ConsumerGroup("check-\(topic)"), topic)
    #expect(try await good.consumer.checkTopics(within: Self.patience) == [])
    await good.stop()
    await good.consumer.close()
    let lost = try GroupMember(cluster, ConsumerGroup("check-nowhere-\(topic)"), cluster.nameOfNoTopic)
    let error = await #expect(throws: KafkaError.self) { try await lost.consumer.checkTopics(within: Self.patience) }
    #expect(error?.code == .unknownTopic)
    await lost.stop()
    await lost.consumer.close()
  }
}

/// The same on librdkafka's own cluster, which keeps no times.
@Loop @Suite(.timeLimit(.minutes(30))) struct EmbeddedExtentTests {
  @Test func nothingIsNewerThanAnyTime() async throws {
    let cluster = try Cluster.embedded()
    let topic = try await cluster.makeTopic(1)
    try await cluster.withProducer { producer in
      for _ in 0..<3 { _ = try await producer.send(KafkaRecord(topic: topic, partition: 0, key: nil, value: [1])) }
    }
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    let place = TopicPartition(topic, 0)
    let extents = try await consumer.extents(of: [place: [1, 1_700_000_000_000, .max]], within: .seconds(300))
    #expect(extents == [place: PartitionExtent(first: 0, end: 3, firstNewer: [:])])
    await consumer.close()
  }

  /// Whoever may write to a topic says when a record was made.
  @Test func aTimeBefore1970IsNoTime() async throws {
    let cluster = try Cluster.embedded()
    let topic = try await cluster.makeTopic(1)
    let times: [Int64] = [.max, -2, -3, 7, .min]
    for time in times { try send(madeAt: time, to: topic, cluster) }
    #expect(try await cluster.read(5, from: topic).map(\.timestamp) == [.max, nil, nil, 7, nil])
  }

  /// Sends as a producer may that is not ours.
  private func send(madeAt time: Int64, to topic: String, _ cluster: Cluster) throws {
    let configuration = try unsafe #require(rd_kafka_conf_new())
    unsafe rd_kafka_conf_set(configuration, "bootstrap.servers", cluster.bootstrapServers, nil, 0)
    let producer = try unsafe #require(rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0))
    defer { unsafe rd_kafka_destroy(producer) }
    try unsafe topic.withCString { name in
      var parts = unsafe [rd_kafka_vu_t(), rd_kafka_vu_t(), rd_kafka_vu_t()]
      unsafe (parts[0].vtype, parts[0].u.cstr) = (RD_KAFKA_VTYPE_TOPIC, name)
      unsafe (parts[1].vtype, parts[1].u.i32) = (RD_KAFKA_VTYPE_PARTITION, 0)
      unsafe (parts[2].vtype, parts[2].u.i64) = (RD_KAFKA_VTYPE_TIMESTAMP, time)
      try unsafe #require(rd_kafka_produceva(producer, &parts, parts.count) == nil)
    }
    try #require(unsafe rd_kafka_flush(producer, 300_000) == RD_KAFKA_RESP_ERR_NO_ERROR)
  }
}
