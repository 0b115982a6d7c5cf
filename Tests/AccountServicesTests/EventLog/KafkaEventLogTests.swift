import AccountEvents
import AccountServices
import AccountStore
import CLibrdkafka
import EventLoop
import Telemetry
import TestSupport
import Testing

@testable import Kafka

@Loop @Suite struct KafkaEventLogTests {
  @Test(.timeLimit(.minutes(30))) func aDeadProducerIsReplaced() async throws {
    let cluster = try EmbeddedCluster(brokers: 1)
    for topic in [Topic.accountEvents, .quarantine] { try cluster.createTopic(topic.name, partitions: 1) }
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", cluster.bootstrapServers)])
    var producers: [Producer] = []
    let log = try KafkaEventLog(topics: [.accountEvents, .quarantine]) {
      (_: KafkaEventLog.Batching) throws(KafkaError) in
      producers.append(try Producer(configuration, deadline: .seconds(300), log: { _ in }))
      return producers[producers.count - 1]
    }
    let event = EventRecord(
      QuarantinedEvent(
        id: try #require(EventID("1")), team: try #require(TeamID("A1B2C3D4E5")),
        audience: try #require(ClientID("com.example.app")), subject: nil, issuedAt: .now, reason: .unknownForm,
        json: Array("{}".utf8)), jws: [])
    #expect(try await log.append(event) == EventLogPosition(partition: 0, offset: 0))
    unsafe rd_kafka_test_fatal_error(
      producers[0].client.handle.pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "as a test wants it")
    let error = await #expect(throws: EventLogError.self) { try await log.append(event) }
    #expect(error?.outcome == .unavailable && error?.reason == "fatal")
    // Until the dead one is gone nothing is sent: it must not arrive before what is still on the wire.
    var next: EventLogPosition?
    try await until {
      do throws(EventLogError) {
        next = try await log.append(event)
      } catch {
        #expect(error.reason == "fatal")
      }
      return next != nil
    }
    #expect(next == EventLogPosition(partition: 0, offset: 1))
    try await until {
      do throws(EventLogError) { try await log.check() } catch { return false }
      return true
    }
    #expect(producers.count == 2)
    await log.close(within: .seconds(300))
    await #expect(throws: EventLogError.self) { try await log.append(event) }
    #expect(producers.count == 2)
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30))) func aRecordOfAnEventIsTheSameInEitherForm() async throws {
    let cluster = try EmbeddedCluster(brokers: 1)
    try cluster.createTopic(Topic.signingKeys.name, partitions: 1)
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", cluster.bootstrapServers)])
    let log = try KafkaEventLog(topics: [.signingKeys]) { (_: KafkaEventLog.Batching) throws(KafkaError) in
      try Producer(configuration, deadline: .seconds(300), log: { _ in })
    }
    let headers = [("ce_id", "1"), ("empty", ""), ("ce_id", "2")].map {
      EventRecord.Header(name: $0, value: [UInt8]($1.utf8))
    }
    let record = EventRecord(topic: .signingKeys, key: [1], value: [2, 3], headers: headers)
    _ = try await log.append(record)
    _ = try await withCheckedContinuation { done in log.append(KafkaRecord(record)) { done.resume(returning: $0) } }
      .get()
    await log.close(within: .seconds(300))
    let consumer = try Consumer(configuration, group: nil, log: { _ in })
    try consumer.assign([PartitionStart(topic: Topic.signingKeys.name, partition: 0, at: .beginning)])
    var records: [ConsumedRecord] = []
    while records.count < 2 { records += try await consumer.next(upTo: 2) }
    for read in records {
      #expect(read.key == [1] && read.value == [2, 3])
      #expect(read.headers == headers.map { KafkaHeader($0.name, $0.value) })
    }
    await consumer.close()
    _ = consume cluster
  }
}

/// A real broker: librdkafka's own cluster knows no topic's settings.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct LargeBatchTests {
  @Test func whatATopicRefusesInABatchItTakesAloneUnlessItIsTooLargeItself() async throws {
    let broker = try await RealBroker.shared()
    let topic = Topic.retries(of: "crowded")
    let kafka = try KafkaConfiguration(properties: [
      ("bootstrap.servers", broker.bootstrapServers), ("linger.ms", "500"),
    ])
    let admin = try Admin(kafka, log: { _ in })
    let new = NewTopic(topic.name, partitions: 1, replicationFactor: 1, settings: ["max.message.bytes": "8000"])
    _ = try await admin.createTopics([new], within: .seconds(300))
    _ = try await admin.awaitTopic(topic.name, within: .seconds(300))
    await admin.close()
    let log = try KafkaEventLog(
      topics: [topic], kafka, deadline: .seconds(300), registry: MetricsRegistry(), logger: CapturedLog().logger())
    let records = (0..<20).map { number in
      EventRecord(
        topic: topic, key: [UInt8(number)], value: [UInt8](repeating: 1, count: 1000),
        headers: [EventRecord.Header(name: "ce_id", value: [1])])
    }
    var (answers, refusals) = (0, [EventLogError]())
    for record in records {
      log.append(record) { result in
        answers += 1
        if case .failure(let error) = result { refusals.append(error) }
      }
    }
    try await until { answers == records.count }
    #expect(refusals.count > 1 && refusals.allSatisfy { $0.outcome == .refused && $0.reason == "recordTooLarge" })
    for record in records { _ = try await log.append(alone: record) }
    let large = EventRecord(topic: topic, key: [1], value: [UInt8](repeating: 1, count: 9000), headers: [])
    let refusal = await #expect(throws: EventLogError.self) { try await log.append(alone: large) }
    #expect(refusal?.outcome == .refused && refusal?.reason == "recordTooLarge")
    await log.close(within: .seconds(300))
    await #expect(throws: EventLogError.self) { try await log.append(alone: large) }
  }
}

extension EventLog {
  /// Appends the record alone and waits for what becomes of it.
  fileprivate func append(alone record: EventRecord) async throws(EventLogError) -> EventLogPosition {
    try await withCheckedContinuation { continuation in
      append(alone: record) { continuation.resume(returning: $0) }
    }.get()
  }

  /// Appends the record and waits for what becomes of it.
  fileprivate func append(_ record: EventRecord) async throws(EventLogError) -> EventLogPosition {
    try await withCheckedContinuation { continuation in
      append(record) { continuation.resume(returning: $0) }
    }.get()
  }
}
