import AccountEvents
import CLibrdkafka
import EventLoop
import TestSupport
import Testing

@testable import AccountServices
@testable import Kafka

/// Tombstones on the topics of a real broker: librdkafka's own cluster knows no topic's settings.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct TombstonesTests {
  private let order = ErasureOrder.sample

  /// Runs `body` with a target on a new topic of three partitions.
  private func withTarget(
    _ topic: String, settings: [String: String],
    _ body: @Loop (Tombstones, RenewableProducer, KafkaConfiguration) async throws -> Void
  ) async throws {
    let broker = try await RealBroker.shared()
    let configuration = try configuration(broker)
    let admin = try Admin(configuration, log: { _ in })
    let new = NewTopic(topic, partitions: 3, replicationFactor: 1, settings: settings)
    _ = try await admin.createTopics([new], within: .seconds(300))
    _ = try await admin.awaitTopic(topic, within: .seconds(300))
    let producer = try RenewableProducer { () throws(KafkaError) in
      try Producer(configuration, deadline: .seconds(300), log: { _ in })
    }
    let target = Tombstones(topics: [topic], key: .account, producer: producer, admin: admin, patience: .seconds(300))
    let result: Result<Void, any Error>
    do { result = .success(try await body(target, producer, configuration)) } catch { result = .failure(error) }
    await producer.close(within: .seconds(10))
    await admin.close()
    try result.get()
  }

  private func configuration(_ broker: RealBroker, _ more: [(String, String)] = []) throws -> KafkaConfiguration {
    try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)] + more)
  }

  /// Writes the account's record into this partition, as a client would that chooses partitions in its own way.
  private func write(to topic: String, _ partition: Int32, _ configuration: KafkaConfiguration) async throws {
    let producer = try Producer(configuration, deadline: .seconds(300), log: { _ in })
    _ = try await producer.send(
      KafkaRecord(topic: topic, partition: partition, key: order.account.key, value: Array("Ada".utf8)))
    await producer.close(within: .seconds(10))
  }

  /// What is left of each key in each partition once they are compacted: the last record's value, unless it has none.
  private func left(
    in topic: String, _ partitions: Int32, _ configuration: KafkaConfiguration
  ) async throws -> [TopicPartition: [String]] {
    let admin = try Admin(configuration, log: { _ in })
    let ends = try await admin.endOffsets(of: topic, within: .seconds(300))
    await admin.close()
    #expect(ends.count == Int(partitions))
    let consumer = try Consumer(configuration, group: nil, log: { _ in })
    try consumer.assign((0..<partitions).map { PartitionStart(topic: topic, partition: $0, at: .beginning) })
    var last: [TopicPartition: [[UInt8]: String?]] = [:]
    var count = ends.values.reduce(0, +)
    while count > 0 {
      for record in try await consumer.next(upTo: 100) {
        let partition = TopicPartition(topic, record.position.partition)
        let value = record.value.map { String(decoding: $0, as: UTF8.self) }
        last[partition, default: [:]][record.key ?? []] = .some(value)
        count -= 1
      }
    }
    await consumer.close()
    return last.mapValues { $0.values.compactMap(\.self) }.filter { !$0.value.isEmpty }
  }

  @Test func reachWhatOthersWroteWhicheverPartitionTheyChose() async throws {
    let topic = "tombstones-others"
    try await withTarget(topic, settings: ["cleanup.policy": "compact"]) { target, _, configuration in
      try await target.check()
      for partition in 0..<3 as Range<Int32> { try await write(to: topic, partition, configuration) }
      let before = try await left(in: topic, 3, configuration)
      let result = try await target.erase(order)
      let after = try await left(in: topic, 3, configuration)
      #expect(before.count == 3 && after.isEmpty)
      #expect(result.state == .erased)
    }
  }

  @Test func reachPartitionsThatWereAddedLater() async throws {
    let topic = "tombstones-added"
    try await withTarget(topic, settings: ["cleanup.policy": "compact,delete"]) { target, _, configuration in
      _ = try await target.erase(order)
      let broker = try await RealBroker.shared()
      let outcome = try await RunningProgram.finish(
        path: "\(RealBroker.home ?? "")/bin/kafka-topics.sh",
        ["--bootstrap-server", broker.bootstrapServers, "--alter", "--topic", topic, "--partitions", "5"])
      #expect(outcome.end == .exit(0), "\(outcome.errors)")
      let admin = try Admin(configuration, log: { _ in })
      try await until { try await admin.awaitTopic(topic, within: .seconds(300)).partitions.count == 5 }
      await admin.close()
      for partition in [0, 4] as [Int32] { try await write(to: topic, partition, configuration) }
      _ = try await target.erase(order)
      let after = try await left(in: topic, 5, configuration)
      #expect(after.isEmpty)
    }
  }

  @Test func areSentByANewProducerWhereTheLastHasDied() async throws {
    let topic = "tombstones-dead"
    try await withTarget(topic, settings: ["cleanup.policy": "compact"]) { target, producer, configuration in
      try await write(to: topic, 1, configuration)
      let dead = try producer.living()
      unsafe rd_kafka_test_fatal_error(
        dead.client.handle.pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "as a test wants it")
      let error = await #expect(throws: ErasureFailure.self) { try await target.erase(order) }
      #expect(error?.code == .unavailable)
      // Until the dead one is gone nothing is sent.
      var result: ErasureResult?
      try await until {
        do throws(ErasureFailure) {
          result = try await target.erase(order)
        } catch {
          #expect(error.code == .unavailable)
        }
        return result != nil
      }
      let after = try await left(in: topic, 3, configuration)
      #expect(result?.state == .erased && after.isEmpty)
      #expect(try producer.living() !== dead)
    }
  }

  @Test func areRefusedWhereTheTopicIsNotCompacted() async throws {
    let topic = "tombstones-deleting"
    try await withTarget(topic, settings: ["cleanup.policy": "delete"]) { target, _, configuration in
      let checked = await #expect(throws: ErasureFailure.self) { try await target.check() }
      #expect(checked?.code == .misconfigured && checked?.detail.contains("cleanup.policy is delete") == true)
      try await write(to: topic, 1, configuration)
      let erased = await #expect(throws: ErasureFailure.self) { try await target.erase(order) }
      #expect(erased?.code == .misconfigured)
      let after = try await left(in: topic, 3, configuration)
      #expect(after.count == 1, "nothing was changed")
    }
  }

  @Test func sayThatTheTopicIsNotThere() async throws {
    let broker = try await RealBroker.shared()
    let configuration = try configuration(broker)
    let producer = try RenewableProducer { () throws(KafkaError) in
      try Producer(configuration, deadline: .seconds(300), log: { _ in })
    }
    let admin = try Admin(configuration, log: { _ in })
    let target = Tombstones(
      topics: ["tombstones-nowhere"], key: .subject, producer: producer, admin: admin, patience: .seconds(300))
    let checked = await #expect(throws: ErasureFailure.self) { try await target.check() }
    #expect(checked?.code == .misconfigured)
    await producer.close(within: .seconds(10))
    await admin.close()
  }
}
