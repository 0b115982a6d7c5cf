import EventLoop
import Kafka
import TestSupport
import Testing

/// What members of a group can rely on, on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct GroupTests {
  private nonisolated static let patience = Duration.seconds(300)

  @Test func nobodyDoesAgainWhatWasHandedOver() async throws {
    let stage = try await Stage(partitions: 6)
    var members = [try stage.join(), try stage.join()]
    try await until(within: Self.patience) { members.map(\.partitions.count) == [3, 3] }
    try await stage.send(60)
    try await until(within: Self.patience) { members.flatMap(\.done).count >= 60 }
    members.append(try stage.join())
    // Records come while partitions move.
    while members.map(\.partitions.count) != [2, 2, 2] { try await stage.send(6) }
    try await stage.send(60)
    try await members[0].leave()
    while members.dropFirst().map(\.partitions.count) != [3, 3] { try await stage.send(6) }
    try await stage.send(60)
    try await until(within: Self.patience) { members.flatMap(\.done).count >= stage.sent }
    let positions = members.flatMap(\.done).map(\.position)
    #expect(positions.count == stage.sent)
    #expect(Set(positions).count == stage.sent)
    #expect(members.flatMap(\.told).allSatisfy { if case .lost = $0 { false } else { true } })
    for member in members.dropFirst() { try await member.leave() }
    await stage.close()
  }

  @Test func offsetsAreCommittedBeforeAPartitionGoes() async throws {
    let stage = try await Stage(partitions: 2)
    let first = try stage.join()
    try await stage.send(20)
    try await until(within: Self.patience) { first.done.count == 20 }
    first.releases = false
    let second = try stage.join()
    try await until(within: Self.patience) { first.told.count == 2 }
    guard case .revoked(let leaving) = first.told.last else {
      Issue.record("told \(first.told)")
      return
    }
    #expect(leaving.count == 1)
    // The group waits for it, and nothing is committed yet.
    #expect(first.partitions.count == 2)
    #expect(second.partitions.isEmpty)
    #expect(try await stage.admin.commitments(of: stage.group, leaving, within: Self.patience).isEmpty)
    try await stage.send(2)
    try await first.release(leaving)
    #expect(first.partitions.isDisjoint(with: leaving))
    let committed = try await stage.admin.commitments(of: stage.group, leaving, within: Self.patience)
    #expect(committed == Dictionary(uniqueKeysWithValues: leaving.map { ($0, CommittedOffset(10)) }))
    try await until(within: Self.patience) { first.done.count == 21 && second.done.count == 1 }
    #expect(second.done.map(\.position.offset) == [10])
    let error = await #expect(throws: KafkaError.self) { try await first.release(leaving) }
    #expect(error?.code == .groupChanged)
    for member in [first, second] { try await member.leave() }
    await stage.close()
  }

  @Test func whoDoesNotReleaseInTimeIsToldThatItIsLost() async throws {
    let stage = try await Stage(partitions: 2)
    let first = try stage.join(handover: .milliseconds(1))
    try await until(within: Self.patience) { first.partitions.count == 2 }
    first.releases = false
    let second = try stage.join()
    try await until(within: Self.patience) { second.partitions.count == 1 }
    try await until(within: Self.patience) { first.told.count == 3 }
    #expect(first.told.dropFirst() == [.revoked(second.partitions), .lost(second.partitions)])
    // Whoever has it now is not set back.
    let offsets = Dictionary(uniqueKeysWithValues: second.partitions.map { ($0, Int64(0)) })
    let error = await #expect(throws: KafkaError.self) {
      try await first.consumer.commit(offsets.mapValues { CommittedOffset($0) }, within: Self.patience)
    }
    #expect(error?.code == .groupChanged)
    for member in [first, second] { try await member.leave() }
    await stage.close()
  }

  @Test func whoComesBackUnderItsNameFindsItsPartitionsAndNobodyElsesMove() async throws {
    let stage = try await Stage(partitions: 4)
    var members = try ["a", "b"].map { try stage.join(instance: $0) }
    try await until(within: Self.patience) { members.map(\.partitions.count) == [2, 2] }
    let (own, told) = (members[0].partitions, members[1].told)
    try await members[0].leave()
    members[0] = try stage.join(instance: "a")
    try await until(within: Self.patience) { members[0].partitions.count == 2 }
    #expect(members[0].partitions == own)
    #expect(members[1].told == told)
    for member in members { try await member.leave() }
    await stage.close()
  }

  @Test func whoseNameAnotherTakesIsToldThatAllIsLost() async throws {
    let stage = try await Stage(partitions: 2)
    let first = try stage.join(instance: "a")
    try await stage.send(2)
    try await until(within: Self.patience) { first.done.count == 2 }
    let own = first.partitions
    let second = try stage.join(instance: "a")
    try await until(within: Self.patience) { first.error != nil }
    #expect(first.error?.code == .fenced)
    #expect(first.error?.isFatal == true)
    #expect(first.told.last == .lost(own))
    #expect(first.partitions.isEmpty)
    // It had committed nothing, so the other one does all of it.
    try await until(within: Self.patience) { second.done.count == 2 }
    await first.consumer.close()
    try await second.leave()
    await stage.close()
  }

  @Test func whoDoesNotAskIsToldThatAllIsLostAndComesBack() async throws {
    let stage = try await Stage(partitions: 2)
    let first = try stage.join(
      handover: .seconds(3), properties: [("max.poll.interval.ms", "20000"), ("session.timeout.ms", "20000")])
    try await until(within: Self.patience) { first.partitions.count == 2 }
    await first.stop()
    let own = first.partitions
    try await until(within: Self.patience) {
      try await stage.admin.describe(group: stage.group, within: Self.patience).members.isEmpty
    }
    // It does not know yet, and the broker does not let it commit.
    let offsets = Dictionary(uniqueKeysWithValues: own.map { ($0, Int64(0)) })
    let error = await #expect(throws: KafkaError.self) {
      try await first.consumer.commit(offsets.mapValues { CommittedOffset($0) }, within: Self.patience)
    }
    #expect(error?.code == .groupChanged)
    first.start()
    try await until(within: Self.patience) { first.error != nil }
    #expect(first.error?.code == .askedTooLate)
    #expect(first.error?.isRetriable == true)
    first.start()
    try await until(within: Self.patience) { first.told.count == 3 }
    #expect(first.told == [.assigned(own), .lost(own), .assigned(own)])
    try await first.leave()
    await stage.close()
  }

  @Test func aGroupThatNobodyKnowsHasCommittedNothing() async throws {
    // One that was never asked for a group: librdkafka's own question for this ended the process then.
    let broker = try await RealBroker()
    let admin = try Admin(
      try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), log: { _ in })
    _ = try await admin.createTopics(
      [NewTopic("events", partitions: 1, replicationFactor: 1)], within: Self.patience)
    let partitions: Set = [TopicPartition("events", 0)]
    for number in 1...5 {
      let group = ConsumerGroup("nobody-\(number)")
      #expect(try await admin.commitments(of: group, partitions, within: Self.patience).isEmpty)
    }
    await admin.close()
  }

  @Test func anOperatorSetsAGroupBackThatHasNoMembers() async throws {
    let stage = try await Stage(partitions: 2)
    let partitions: Set = [TopicPartition(stage.topic, 0), TopicPartition(stage.topic, 1)]
    let places = [TopicPartition(stage.topic, 0): Int64(3), TopicPartition(stage.topic, 1): 9]
    #expect(try await stage.admin.describe(group: stage.group, within: Self.patience).state == .dead)
    let member = try stage.join(instance: "a")
    try await stage.send(20)
    try await until(within: Self.patience) { member.done.count == 20 }
    let group = try await stage.admin.describe(group: stage.group, within: Self.patience)
    #expect(group.state == .stable)
    #expect(group.members.map(\.instance) == ["a"])
    #expect(group.members.map(\.partitions) == [partitions])
    let error = await #expect(throws: KafkaError.self) {
      try await stage.admin.resetOffsets(of: stage.group, to: places, within: Self.patience)
    }
    #expect(error?.code == .groupInUse)
    try await member.leave()
    // A member with a name of its own is missed only after a while: this one is taken back by one without.
    let other = ConsumerGroup("\(stage.group)-other")
    try await stage.admin.resetOffsets(of: other, to: places, within: Self.patience)
    #expect(
      try await stage.admin.commitments(of: other, partitions, within: Self.patience)
        == places.mapValues { CommittedOffset($0) })
    #expect(try await stage.admin.describe(group: other, within: Self.patience).state == .empty)
    let again = try stage.join(other)
    try await until(within: Self.patience) { again.done.count == 8 }
    #expect(Set(again.done.map(\.position.offset)) == Set(3...9))
    try await again.leave()
    await stage.close()
  }
}

/// A topic, a group, and whoever sends.
@Loop
private final class Stage {
  let cluster: Cluster
  let topic: String
  let group: ConsumerGroup
  let admin: Admin
  private let producer: Producer
  private let partitions: Int
  private(set) var sent = 0

  init(partitions: Int) async throws {
    self.partitions = partitions
    cluster = try await Cluster.real(.shared())
    topic = try await cluster.makeTopic(partitions)
    group = ConsumerGroup("group-\(topic)")
    producer = try Producer(cluster.configuration(), deadline: .seconds(600), log: { _ in })
    admin = try Admin(cluster.configuration(), log: { _ in })
  }

  func join(
    _ group: ConsumerGroup? = nil, instance: String? = nil, handover: Duration = .seconds(120),
    properties: [(String, String)] = []
  ) throws -> GroupMember {
    try GroupMember(cluster, group ?? self.group, topic, instance: instance, handover: handover, properties: properties)
  }

  /// Sends as many records, to one partition after another.
  func send(_ count: Int) async throws {
    for _ in 0..<count {
      let partition = Int32(sent % partitions)
      _ = try await producer.send(KafkaRecord(topic: topic, partition: partition, key: nil, value: [1]))
      sent += 1
    }
  }

  func close() async {
    _ = await producer.close(within: .zero)
    await admin.close()
  }
}
