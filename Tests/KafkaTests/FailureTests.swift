import CLibrdkafka
import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import Kafka

/// What a sender is told when the cluster does not answer.
@Loop @Suite struct FailureTests {
  /// Nobody listens there.
  private nonisolated static let nowhere = "127.0.0.1:1"

  @Test func whoeverSeeksWhileLibrdkafkaStillAsksWhereToBeginGetsThere() async throws {
    let embedded = try EmbeddedCluster(brokers: 1)
    try embedded.createTopic("topic", partitions: 1)
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", embedded.bootstrapServers)])
    let producer = try Producer(configuration, deadline: .seconds(300), log: { _ in })
    for number in 0..<10 {
      _ = try await producer.send(KafkaRecord(topic: "topic", key: nil, value: Array("\(number)".utf8)))
    }
    _ = await producer.close(within: .zero)
    // The answer to where the topic begins comes after the seek. On a busy machine librdkafka says that time is over, too.
    embedded.setDelay(.milliseconds(300))
    let partition = TopicPartition("topic", 0)
    for place in [7, 3] as [Int64] {
      let consumer = try Consumer(
        configuration,
        group: GroupMembership(ConsumerGroup("seeks-\(place)"), instance: nil, handover: .seconds(60)), log: { _ in })
      try consumer.subscribe(to: ["topic"])
      #expect(try await consumer.nextEvent(upTo: 1) == .assigned([partition]))
      try await consumer.seek(to: [partition: place], within: .seconds(300))
      var offsets: [Int64] = []
      while offsets.last != 9 {
        guard case .records(let records) = try await consumer.nextEvent(upTo: 3) else { break }
        offsets += records.map(\.position.offset)
      }
      // Where that answer comes last, librdkafka begins once more, at the beginning: nothing is left out.
      #expect(offsets.first == place && offsets.suffix(Int(10 - place)) == Array(place..<10)[...])
      await consumer.close()
    }
  }

  @Test(.timeLimit(.minutes(30))) func aPartitionWithoutALeaderIsNamedByTheCheck() async throws {
    let embedded = try EmbeddedCluster(brokers: 1)
    try embedded.createTopic("topic", partitions: 2)
    let consumer = try Consumer(
      KafkaConfiguration(properties: [("bootstrap.servers", embedded.bootstrapServers)]),
      group: GroupMembership(ConsumerGroup("group"), instance: nil, handover: .seconds(60)), log: { _ in })
    try consumer.subscribe(to: ["topic"])
    #expect(try await consumer.checkTopics(within: .seconds(300)) == [])
    let partition = TopicPartition("topic", 1)
    embedded.takeLeader(of: partition)
    #expect(try await consumer.checkTopics(within: .seconds(300)) == [partition])
    await consumer.close()
  }

  @Test(.timeLimit(.minutes(30))) func aReaderWithoutAGroupNeedsNoGroup() async throws {
    let embedded = try EmbeddedCluster(brokers: 1)
    try embedded.createTopic("topic", partitions: 1)
    embedded.refuseGroups()
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", embedded.bootstrapServers)])
    let producer = try Producer(configuration, deadline: .seconds(300), log: { _ in })
    let (refused, log) = AsyncStream.makeStream(of: Void.self)
    let traced = try KafkaConfiguration(properties: [
      ("bootstrap.servers", embedded.bootstrapServers), ("debug", "cgrp"),
    ])
    let reader = try Consumer(traced, group: nil) { line in
      if line.text.contains("FindCoordinator response error") { log.yield() }
    }
    try reader.assign([PartitionStart(topic: "topic", partition: 0, at: .beginning)])
    var iterator = refused.makeAsyncIterator()
    _ = await iterator.next()
    _ = try await producer.send(KafkaRecord(topic: "topic", key: nil, value: [7]))
    #expect(try await reader.next(upTo: 1).map(\.value) == [[7]])
    await reader.close()
    let member = try Consumer(
      configuration, group: GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(1)),
      log: { _ in })
    try member.subscribe(to: ["topic"])
    let error = await #expect(throws: KafkaError.self) { try await member.nextEvent(upTo: 1) }
    #expect(error?.code == .notAuthorized)
    await member.close()
    _ = await producer.close(within: .zero)
  }

  @Test func whatWasNotPausedIsNotDisturbedByResuming() async throws {
    let embedded = try EmbeddedCluster(brokers: 1)
    try embedded.createTopic("topic", partitions: 2)
    let lines = Mutex<[String]>([])
    let configuration = try KafkaConfiguration(properties: [
      ("bootstrap.servers", embedded.bootstrapServers), ("debug", "topic"),
    ])
    let reader = try Consumer(configuration, group: nil) { line in
      if line.text.contains("Application ") { lines.withLock { $0.append(line.text) } }
    }
    let (paused, other) = (TopicPartition("topic", 0), TopicPartition("topic", 1))
    try reader.assign([paused, other].map { PartitionStart(topic: "topic", partition: $0.partition, at: .beginning) })
    try reader.resume([paused, other])
    #expect(lines.withLock { $0 } == [])
    try reader.pause([paused])
    for _ in 0..<2 { try reader.resume([paused, other]) }
    let told = lines.withLock { $0 }
    #expect(told.count == 2 && told.allSatisfy { $0.contains(" 1 partition(s)") }, "\(told)")
    await reader.close()
  }

  @Test func whatEndsAMemberIsToldBeforeWhatDoesNot() async throws {
    let cluster = try Cluster.embedded()
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    consumer.fail(KafkaError(.brokerUnavailable, detail: "first"))
    consumer.fail(KafkaError(.fatal, detail: "second"))
    consumer.fail(KafkaError(.fenced, detail: "third"))
    let error = await #expect(throws: KafkaError.self) { try await consumer.next(upTo: 1) }
    #expect(error?.detail == "second")
    await consumer.close()
  }

  @Test func saysHowManyWereNotAcknowledged() async throws {
    let configuration = try KafkaConfiguration(properties: [
      ("bootstrap.servers", Self.nowhere), ("queue.buffering.max.messages", "3"),
    ])
    let producer = try Producer(configuration, deadline: .seconds(600), log: { _ in })
    let sent = begin((0..<5).map { KafkaRecord(topic: "topic", key: nil, value: [$0]) }, producer)
    await turn()
    #expect(await producer.close(within: .milliseconds(10)) == 5)
    var consequences: [KafkaError.Consequence?] = []
    for task in sent {
      let failure = await task.value.failure
      #expect(failure?.code == .closed)
      consequences.append(failure?.consequence)
    }
    // Three were with librdkafka, two never left our hands.
    #expect(consequences == [.uncertain, .uncertain, .uncertain, .fatal, .fatal])
  }

  @Test(.timeLimit(.minutes(30))) func waitsForRoomOnlyForItsPartOfTheDeadline() async throws {
    let configuration = try KafkaConfiguration(properties: [
      ("bootstrap.servers", Self.nowhere), ("queue.buffering.max.messages", "1"),
    ])
    let producer = try Producer(configuration, deadline: .milliseconds(400), log: { _ in })
    let results = await outcomes(of: [1, 2].map { KafkaRecord(topic: "topic", key: nil, value: [$0]) }, producer)
    #expect(results.first?.failure?.code == .timedOut)
    // Where the loop was kept from turning, librdkafka gave up the first one meanwhile, and there was room after all.
    #expect(results.last?.failure?.code == .queueFull || results.last?.failure?.code == .timedOut)
    // Both have their answer, so closing has nobody to answer any more.
    #expect(await producer.close(within: .seconds(300)) == 0)
  }

  @Test func isFatalOnceLibrdkafkaSaysSo() async throws {
    let cluster = try Cluster.embedded()
    let producer = try Producer(cluster.configuration(), deadline: .seconds(300), log: { _ in })
    unsafe rd_kafka_test_fatal_error(
      producer.client.handle.pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "as a test wants it")
    let error = await #expect(throws: KafkaError.self) {
      try await producer.send(KafkaRecord(topic: "topic", key: nil, value: nil))
    }
    #expect(error?.code == .fatal)
    #expect(error?.isFatal == true)
    _ = await producer.close(within: .zero)
  }

  /// Whoever replaces the producer must not wait for what the dead one had.
  @Test func aFatalProducerAnswersEverybodyWhoWaits() async throws {
    let configuration = try KafkaConfiguration(properties: [
      ("bootstrap.servers", Self.nowhere), ("queue.buffering.max.messages", "3"),
    ])
    let producer = try Producer(configuration, deadline: .seconds(600), log: { _ in })
    let sent = begin((0..<5).map { KafkaRecord(topic: "topic", key: nil, value: [$0]) }, producer)
    await turn()
    unsafe rd_kafka_test_fatal_error(
      producer.client.handle.pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "as a test wants it")
    var codes: [KafkaError.Code?] = []
    for task in sent { codes.append(await task.value.failure?.code) }
    // Three never left librdkafka's queue, and it says so; two waited for room in it.
    #expect(codes == [.brokerUnavailable, .brokerUnavailable, .brokerUnavailable, .fatal, .fatal])
    #expect(await producer.close(within: .seconds(300)) == 0)
  }

  /// A command whose last client is still being let in when it has its answer must not end with a complaint.
  @Test func whatTheOwnEndHasCutOffIsNoError() {
    let words = "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker handle destroyed"
    #expect(KafkaLogLine(syslog: 3, facility: "FAIL", text: words).level == .debug)
    #expect(KafkaLogLine(syslog: 3, facility: "FAIL", text: "SASL authentication error: wrong").level == .error)
  }

  @Test func tellsWhatLibrdkafkaWouldLog() async throws {
    let (lines, log) = AsyncStream.makeStream(of: KafkaLogLine.self)
    let configuration = try KafkaConfiguration(properties: [
      ("bootstrap.servers", Self.nowhere), ("client.id", "tester"),
    ])
    let producer = try Producer(configuration, deadline: .seconds(1)) { log.yield($0) }
    var iterator = lines.makeAsyncIterator()
    let line = await iterator.next()
    #expect(line?.level == .error)
    #expect(line?.facility == "FAIL")
    #expect(line?.text.contains("Connection refused") == true)
    _ = await producer.close(within: .zero)
  }
}

/// What a broker does that is killed, frozen or stricter than the producer knows.
@Loop @Suite(RealBroker.isThere) struct RealBrokerFailureTests {
  @Test(.timeLimit(.minutes(30))) func answersWithinTheDeadlineWhenTheBrokerIsKilled() async throws {
    let broker = try await RealBroker()
    let (producer, topic) = try await producer(on: broker)
    try await untilItSucceeds { _ = try await producer.send(KafkaRecord(topic: topic, key: nil, value: [0])) }
    let sent = begin((0..<20).map { KafkaRecord(topic: topic, key: nil, value: [$0]) }, producer)
    broker.kill()
    for task in sent {
      guard let error = await task.value.failure else { continue }  // the broker was quicker than the kill
      #expect(error.isUncertain || error.isRetriable)
    }
    let error = await #expect(throws: KafkaError.self) {
      try await producer.send(KafkaRecord(topic: topic, key: nil, value: [1]))
    }
    #expect(error?.code == .timedOut)
    _ = await producer.close(within: .milliseconds(100))
  }

  @Test(.timeLimit(.minutes(30))) func cannotKnowWhatAFrozenBrokerDid() async throws {
    let broker = try await RealBroker()
    let (producer, topic) = try await producer(on: broker)
    try await untilItSucceeds { _ = try await producer.send(KafkaRecord(topic: topic, key: [0], value: [0])) }
    try broker.freeze()
    let error = await #expect(throws: KafkaError.self) {
      try await producer.send(KafkaRecord(topic: topic, key: [1], value: [1]))
    }
    #expect(error?.code == .timedOut)
    #expect(error?.isUncertain == true)
    broker.thaw()
    try await untilItSucceeds { _ = try await producer.send(KafkaRecord(topic: topic, key: [2], value: [2])) }
    // Whether the second one arrived is what nobody knows; the two that were acknowledged are there.
    let values = try await Cluster.real(broker).read(2, from: topic).map(\.value)
    #expect(values.first == [0])
    #expect(await producer.close(within: .seconds(300)) == 0)
  }

  @Test(.timeLimit(.minutes(30))) func isToldThatTheTopicTakesNoSuchRecord() async throws {
    let broker = try await RealBroker.shared()
    try await makeRealTopic(
      NewTopic("strict", partitions: 1, replicationFactor: nil, settings: ["max.message.bytes": "1000"]), on: broker)
    try await Cluster.real(broker).withProducer { producer in
      let error = await #expect(throws: KafkaError.self) {
        try await producer.send(KafkaRecord(topic: "strict", key: nil, value: .init(repeating: 1, count: 2000)))
      }
      #expect(error?.code == .recordTooLarge)
      #expect(error?.consequence == .permanent)
    }
  }

  @Test(.timeLimit(.minutes(30))) func makesATopicOnceAndNoneThatCannotBe() async throws {
    let broker = try await RealBroker.shared()
    let admin = try Admin(Cluster.real(broker).configuration(), log: { _ in })
    let topic = NewTopic("made-once", partitions: 2, replicationFactor: 1, settings: ["cleanup.policy": "compact"])
    #expect(try await admin.createTopics([topic], within: .seconds(300)) == ["made-once"])
    #expect(try await admin.createTopics([topic], within: .seconds(300)) == [])
    let impossible = [
      NewTopic("no topic", partitions: 1, replicationFactor: 1),
      NewTopic("too-many-copies", partitions: 1, replicationFactor: 9),
      NewTopic("bad-setting", partitions: 1, replicationFactor: 1, settings: ["cleanup.policy": "never"]),
    ]
    for topic in impossible {
      let error = await #expect(throws: KafkaError.self) {
        try await admin.createTopics([topic], within: .seconds(300))
      }
      #expect(error?.code == .refused)
      #expect(error?.consequence == .permanent)
    }
    await admin.close()
  }

  private func producer(on broker: RealBroker) async throws -> (Producer, String) {
    let cluster = Cluster.real(broker)
    let topic = try await cluster.makeTopic(1)
    return (try Producer(cluster.configuration(), deadline: .seconds(2), log: { _ in }), topic)
  }
}

/// Tries until it does not throw: librdkafka connects in its own time, which may be more than a short deadline.
@Loop
func untilItSucceeds(_ attempt: @Loop () async throws -> Void) async throws {
  while true {
    do { return try await attempt() } catch { try Task.checkCancellation() }
  }
}
