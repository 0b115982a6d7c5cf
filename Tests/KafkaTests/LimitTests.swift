import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Kafka

/// Whoever asks is answered within the limit, also while no broker is there.
///
/// Tests/run keeps these from a process that Swift Testing starts programs in: see `EmbeddedCluster.setReachable`.
@Loop @Suite(.timeLimit(.minutes(30))) struct LimitTests {
  private let cluster: EmbeddedCluster
  private let configuration: KafkaConfiguration
  private let partition = TopicPartition("topic", 0)

  init() throws {
    cluster = try EmbeddedCluster(brokers: 1)
    try cluster.createTopic("topic", partitions: 1)
    configuration = try KafkaConfiguration(properties: [("bootstrap.servers", cluster.bootstrapServers)])
  }

  @Test func anEventIsAnsweredForWithinTheDeadline() async throws {
    let record = KafkaRecord(topic: "topic", key: nil, value: [1])
    let producer = try Producer(configuration, deadline: .seconds(2), log: { _ in })
    try await untilItSucceeds { _ = try await producer.send(record) }
    cluster.setReachable(false)
    let error = await #expect(throws: KafkaError.self) { try await producer.send(record) }
    #expect(error?.code == .timedOut)
    #expect(error?.isUncertain == true)
    cluster.setReachable(true)
    try await untilItSucceeds { _ = try await producer.send(record) }
    #expect(await producer.close(within: .seconds(300)) == 0)
  }

  /// librdkafka would abort the process.
  @Test func theClusterMayGoAwayWhileProgramsAreStarted() async throws {
    let isOver = Atomic(false)
    let (starter, breaker) = (BlockingThread(named: "starter"), BlockingThread(named: "breaker"))
    async let programs: Void = starter.run(throwing: {
      while !isOver.load(ordering: .relaxed) {
        let process = try ChildProcess.spawn(["true"], ["PATH": "/usr/bin:/bin"], (0, 1, 2), inGroupOfItsOwn: false)
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
      }
    })
    for _ in 0..<20 {
      // The cluster's thread may take a second until it hears of either.
      await breaker.run { [cluster] in
        cluster.setReachable(false)
        cluster.setReachable(true)
      }
    }
    isOver.store(true, ordering: .relaxed)
    try await programs
    starter.close()
    breaker.close()
  }

  @Test func aQuestionForOffsetsIsGivenUp() async throws {
    let admin = try Admin(configuration, log: { _ in })
    #expect(try await admin.endOffsets(of: "topic", within: .seconds(300)) == [0: 0])
    let consumer = try Consumer(configuration, group: nil, log: { _ in })
    #expect(try await consumer.beginningOffsets(of: [partition], within: .seconds(300)) == [partition: 0])
    cluster.setReachable(false)
    let limit = Duration.milliseconds(300)
    for ask in [
      { _ = try await admin.endOffsets(of: "topic", within: limit) },
      { _ = try await admin.offsets(of: "topic", since: 0, within: limit) },
      { [partition] in _ = try await consumer.endOffsets(of: [partition], within: limit) },
      { [partition] in _ = try await consumer.beginningOffsets(of: [partition], within: limit) },
    ] as [@Loop () async throws -> Void] {
      let error = await #expect(throws: KafkaError.self) { try await ask() }
      #expect(error?.code == .brokerUnavailable)
    }
    // Nothing is left on the way that closing would wait for.
    await consumer.close()
    await admin.close()
  }

  @Test func aCommitIsGivenUpAndTheNextWaitsForIt() async throws {
    let member = try Consumer(
      configuration, group: GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(60)),
      log: { _ in })
    try member.subscribe(to: ["topic"])
    #expect(try await member.nextEvent(upTo: 1) == .assigned([partition]))
    try await member.commit([partition: 1], within: .seconds(300))
    cluster.setReachable(false)
    let first = await #expect(throws: KafkaError.self) {
      try await member.commit([partition: 2], within: .milliseconds(50))
    }
    #expect(first?.code == .timedOut && first?.isUncertain == true)
    // librdkafka still has the first one, and could send it behind this one.
    let second = await #expect(throws: KafkaError.self) {
      try await member.commit([partition: 3], within: .milliseconds(50))
    }
    #expect(second?.code == .brokerUnavailable && second?.isRetriable == true)
    cluster.setReachable(true)
    while true {
      do throws(KafkaError) {
        try await member.commit([partition: 4], within: .seconds(300))
        break
      } catch { #expect(error.isRetriable) }
    }
    #expect(try await member.commitments(of: [partition], within: .seconds(300)) == [partition: 4])
    await member.close()
  }

  /// What was ours when it was asked for may have gone to somebody else when its turn comes.
  @Test func aCommitThatWaitedIsNotSentForAPartitionThatWentMeanwhile() async throws {
    let member = try Consumer(
      configuration, group: GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(60)),
      log: { _ in })
    try member.subscribe(to: ["topic"])
    #expect(try await member.nextEvent(upTo: 1) == .assigned([partition]))
    cluster.setReachable(false)
    let first = Task(executorPreference: Loop.executor) {
      try await member.commit([partition: 1], within: .seconds(300))
    }
    let second = Task(executorPreference: Loop.executor) {
      try await member.commit([partition: 2], within: .seconds(300))
    }
    await turn()
    member.share.lose([partition])
    cluster.setReachable(true)
    _ = await first.result
    let error = await #expect(throws: KafkaError.self) { try await second.value }
    #expect(error?.code == .groupChanged)
    await member.close()
  }
}
