import EventLoop
import Kafka
import TestSupport
import Testing

/// What holds on every cluster: run against the embedded one and against a real broker.
struct Clause: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let check: @Loop @Sendable (Cluster) async throws -> Void

  init(_ description: String, _ check: @escaping @Loop @Sendable (Cluster) async throws -> Void) {
    (testDescription, self.check) = (description, check)
  }
}

let contract: [Clause] = [
  Clause("a record comes back as it was sent") { cluster in
    let topic = try await cluster.makeTopic(1)
    let headers = [
      KafkaHeader("ce_type", "com.example.v1"), KafkaHeader("twice", [1]), KafkaHeader("twice", [2]),
      KafkaHeader("empty", []), KafkaHeader("nothing", nil),
    ]
    let sent = KafkaRecord(topic: topic, key: [0, 255], value: Array(repeating: 7, count: 5000), headers: headers)
    let position = try await cluster.withProducer { try await $0.send(sent) }
    let record = try #require(try await cluster.read(1, from: topic).first)
    #expect(record.topic == topic)
    #expect(record.position == position)
    #expect(record.key == sent.key)
    #expect(record.value == sent.value)
    #expect(record.headers == headers)
    #expect(record.timestamp != nil)
  },
  Clause("a tombstone is neither an empty value nor an error") { cluster in
    let topic = try await cluster.makeTopic(1)
    try await cluster.withProducer { producer in
      for value in [nil, [], [1]] as [[UInt8]?] {
        _ = try await producer.send(KafkaRecord(topic: topic, key: value, value: value))
      }
    }
    let records = try await cluster.read(3, from: topic)
    #expect(records.map(\.value) == [nil, [], [1]])
    #expect(records.map(\.key) == [nil, [], [1]])
  },
  Clause("records of one key keep their order while many senders send") { cluster in
    let topic = try await cluster.makeTopic(4)
    let (senders, each): (UInt8, UInt8) = (16, 50)
    try await cluster.withProducer { producer in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for sender in 0..<senders {
          let records = (0..<each).map { KafkaRecord(topic: topic, key: [sender], value: [$0]) }
          group.addTask { for outcome in await outcomes(of: records, producer) { _ = try outcome.get() } }
        }
        try await group.waitForAll()
      }
    }
    let records = try await cluster.read(Int(senders) * Int(each), from: topic, partitions: 4)
    for (_, ofKey) in Dictionary(grouping: records, by: \.key) {
      #expect(ofKey.map(\.value) == (0..<each).map { [$0] })
      #expect(Set(ofKey.map(\.position.partition)).count == 1)
    }
  },
  Clause("a full queue makes senders wait, and keeps their order") { cluster in
    let topic = try await cluster.makeTopic(1)
    let positions = try await cluster.withProducer([("queue.buffering.max.messages", "5")]) { producer in
      await outcomes(of: (0..<50).map { KafkaRecord(topic: topic, key: [1], value: [UInt8($0)]) }, producer)
    }
    #expect(try positions.map { try $0.get().offset } == Array(0..<50))
  },
  Clause("a record that waits for room has all its headers, in their order") { cluster in
    let topic = try await cluster.makeTopic(1)
    let own = [KafkaHeader("number", [7]), KafkaHeader("none", nil as [UInt8]?), KafkaHeader("empty", [])]
    let added = [KafkaHeader("more", [1, 2]), KafkaHeader("number", [8])]
    let results = try await cluster.withProducer([("queue.buffering.max.messages", "2")]) { producer in
      await withCheckedContinuation { done in
        var results: [Outcome] = []
        for _ in 0..<6 {
          producer.send(KafkaRecord(topic: topic, key: nil, value: [], headers: own), adding: added.count) { list in
            for header in added { list.add(header.name, header.value) }
          } then: {
            results.append($0)
            if results.count == 6 { done.resume(returning: results) }
          }
        }
      }
    }
    for result in results { _ = try result.get() }
    #expect(try await cluster.read(6, from: topic).map(\.headers) == Array(repeating: own + added, count: 6))
  },
  Clause("more senders than may wait are turned away, and may try again") { cluster in
    let topic = try await cluster.makeTopic(1)
    let properties = [("queue.buffering.max.messages", "5"), ("linger.ms", "500")]
    let results = try await cluster.withProducer(properties, maximumWaiting: 3) { producer in
      await outcomes(of: (0..<20).map { KafkaRecord(topic: topic, key: [1], value: [$0]) }, producer)
    }
    let codes = results.map { $0.failure?.code }
    #expect(codes == Array(repeating: nil, count: 8) + Array(repeating: .queueFull, count: 12))
    #expect(results.allSatisfy { $0.failure?.isRetriable ?? true })
  },
  Clause("closing waits for what is under way") { cluster in
    let topic = try await cluster.makeTopic(1)
    let producer = try Producer(
      cluster.configuration([("queue.buffering.max.messages", "10"), ("linger.ms", "100")]), deadline: .seconds(600),
      log: { _ in })
    let sent = begin((0..<30).map { KafkaRecord(topic: topic, key: nil, value: [$0]) }, producer)
    await turn()
    #expect(await producer.close(within: .seconds(300)) == 0)
    for task in sent { _ = try await task.value.get() }
    await #expect(throws: KafkaError.self) {
      try await producer.send(KafkaRecord(topic: topic, key: nil, value: [0]))
    }
  },
  Clause("a topic that is not there is named as the cause, ahead of the deadline") { cluster in
    let result = try await cluster.withProducer([("topic.metadata.propagation.max.ms", "500")]) { producer in
      await outcomes(of: [KafkaRecord(topic: cluster.nameOfNoTopic, key: nil, value: [1])], producer)
    }
    #expect(result.first?.failure?.code == .unknownTopic)
    #expect(result.first?.failure?.isRetriable == true)
  },
  Clause("a record that is too large is refused for good") { cluster in
    let topic = try await cluster.makeTopic(1)
    let result = try await cluster.withProducer([("message.max.bytes", "2000")]) { producer in
      await outcomes(
        of: [2500, 1500].map { KafkaRecord(topic: topic, key: nil, value: .init(repeating: 0, count: $0)) }, producer)
    }
    #expect(result.map { $0.failure?.code } == [.recordTooLarge, nil])
    #expect(result.first?.failure?.consequence == .permanent)
  },
  Clause("reading begins where it was told to") { cluster in
    let topic = try await cluster.makeTopic(1)
    try await cluster.withProducer { producer in
      for number in 0..<5 { _ = try await producer.send(KafkaRecord(topic: topic, key: nil, value: [UInt8(number)])) }
      let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
      try consumer.assign([PartitionStart(topic: topic, partition: 0, at: .offset(3))])
      #expect(try await consumer.take(2).map(\.value) == [[3], [4]])
      await consumer.close()
    }
  },
  Clause("a group reads all partitions, and knows what it has committed") { cluster in
    let topic = try await cluster.makeTopic(3)
    try await cluster.withProducer { producer in
      for partition in 0..<3 as Range<Int32> {
        _ = try await producer.send(KafkaRecord(topic: topic, partition: partition, key: nil, value: [1]))
      }
    }
    let member = try GroupMember(cluster, ConsumerGroup("group-\(topic)"), topic)
    try await until { member.done.count == 3 }
    #expect(Set(member.done.map(\.position.partition)) == [0, 1, 2])
    let partitions = member.partitions
    try await member.consumer.commit(member.commitments, within: .seconds(300))
    let committed = try await member.consumer.commitments(of: partitions, within: .seconds(300))
    #expect(committed == Dictionary(uniqueKeysWithValues: partitions.map { ($0, 1) }))
    try await member.leave()
  },
  Clause("closing a consumer, or cancelling the task, ends the wait for records") { cluster in
    let topic = try await cluster.makeTopic(1)
    let consumer = try Consumer(cluster.configuration(), group: nil, log: { _ in })
    try consumer.assign([PartitionStart(topic: topic, partition: 0, at: .end)])
    let cancelled = Task { @Loop in try await consumer.next(upTo: 1) }
    await turn()
    cancelled.cancel()
    #expect(try await cancelled.value == [])
    let closed = Task { @Loop in try await consumer.next(upTo: 1) }
    await turn()
    await consumer.close()
    #expect(try await closed.value == [])
  },
  Clause("a topic is described, and one that is not there is unknown") { cluster in
    let topic = try await cluster.makeTopic(2)
    let admin = try Admin(cluster.configuration(), log: { _ in })
    let description = try await admin.awaitTopic(topic, within: .seconds(300))
    #expect(description.partitions.map(\.number) == [0, 1])
    #expect(description.isReady)
    let error = await #expect(throws: KafkaError.self) {
      try await admin.describe(topic: cluster.nameOfNoTopic, within: .seconds(300))
    }
    #expect(error?.code == .unknownTopic)
    await admin.close()
  },
]

typealias Outcome = Result<KafkaPosition, KafkaError>

/// Begins to send the records in their order, each by a task of its own. They are with the producer after a yield.
@Loop
func begin(_ records: [KafkaRecord], _ producer: Producer) -> [Task<Outcome, Never>] {
  records.map { record in Task(executorPreference: Loop.executor) { await outcome(of: record, producer) } }
}

/// Sends the records as `begin` does, and says what became of each.
@Loop
func outcomes(of records: [KafkaRecord], _ producer: Producer) async -> [Outcome] {
  var outcomes: [Outcome] = []
  for task in begin(records, producer) { outcomes.append(await task.value) }
  return outcomes
}

@Loop
private func outcome(of record: KafkaRecord, _ producer: Producer) async -> Outcome {
  do throws(KafkaError) { return .success(try await producer.send(record)) } catch { return .failure(error) }
}

extension Result {
  var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}
