import EventLoop
import Glibc
import Kafka
import Testing

@Suite struct ClosingTests {
  /// librdkafka's handle must not go while a call still uses it.
  @Loop @Test(.timeLimit(.minutes(30))) func closingWaitsForAQuestionThatIsOnItsWay() async throws {
    // Nobody listens there, so the question takes all the time that it is given.
    let nobody = try KafkaConfiguration(properties: [("bootstrap.servers", "127.0.0.1:9")])
    let producer = try Producer(nobody, deadline: .seconds(1), log: { _ in })
    let question = Task(executorPreference: Loop.executor) { await answer(to: producer, within: .milliseconds(300)) }
    let close = Task(executorPreference: Loop.executor) {
      _ = await producer.close(within: .zero)
      return MonotonicTime.now
    }
    let (error, time) = await question.value
    #expect(error?.code == .brokerUnavailable)
    #expect(await close.value >= time)
    #expect(await answer(to: producer, within: .seconds(300)).0?.code == .closed)
  }

  /// librdkafka would end the process: its issue 4381.
  @Test(.timeLimit(.minutes(30))) func aMemberMayEndBeforeItIsGivenAnything() async {
    for isClosed in [true, false] {
      if isClosed {
        await #expect(processExitsWith: .success) { try await endBetweenJoiningAndSynchronizing(isClosed: true) }
      } else {
        await #expect(processExitsWith: .success) { try await endBetweenJoiningAndSynchronizing(isClosed: false) }
      }
    }
  }

  @Loop @Test(.timeLimit(.minutes(30))) func aProducerThatIsDroppedAnswersWhoeverWaits() async throws {
    let nobody = try KafkaConfiguration(properties: [("bootstrap.servers", "127.0.0.1:9")])
    var producer: Producer? = try Producer(nobody, deadline: .seconds(600), log: { _ in })
    let result = await withCheckedContinuation { continuation in
      producer?.send(KafkaRecord(topic: "topic", key: nil, value: [1])) { continuation.resume(returning: $0) }
      producer = nil
    }
    #expect(result.failure?.code == .closed)
    #expect(result.failure?.isUncertain == true)
  }

  /// Else the kernel would go on sending for a producer that was closed, or a process that was killed.
  @Loop @Test(.timeLimit(.minutes(30))) func whatWasNotSentEndsWithItsConnection() async throws {
    let cluster = try Cluster.embedded()
    let port = try #require(cluster.bootstrapServers.split(separator: ":").last.flatMap { UInt16($0) })
    let topic = try await cluster.makeTopic(1)
    try await cluster.withProducer { producer in
      _ = try await producer.send(KafkaRecord(topic: topic, key: nil, value: [1], headers: []))
      let lingers = lingers(ofConnectionsTo: port)
      #expect(!lingers.isEmpty)
      for linger in lingers { #expect(linger.l_onoff == 1 && linger.l_linger == 0) }
    }
  }
}

/// Joins a group, and ends while the answer to who gets what is on its way.
@Loop
private func endBetweenJoiningAndSynchronizing(isClosed: Bool) async throws {
  let cluster = try EmbeddedCluster(brokers: 1)
  try cluster.createTopic("topic", partitions: 1)
  cluster.setDelay(.milliseconds(500))
  let (joined, log) = AsyncStream.makeStream(of: Void.self)
  let configuration = try KafkaConfiguration(properties: [
    ("bootstrap.servers", cluster.bootstrapServers), ("debug", "cgrp"),
  ])
  var member: Consumer? = try Consumer(
    configuration, group: GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(1))
  ) { line in
    if line.facility == "JOINGROUP", line.text.contains("(no error)") { log.yield() }
  }
  try member?.subscribe(to: ["topic"])
  var iterator = joined.makeAsyncIterator()
  _ = await iterator.next()
  if isClosed {
    await member?.close()
  } else {
    member = nil
    // What is dropped ends on a thread of its own: longer than the answer would take.
    try await Loop.sleep(for: .seconds(2))
  }
}

/// How the kernel treats what was not sent when it closes the connections of this process to a port.
private func lingers(ofConnectionsTo port: UInt16) -> [linger] {
  (0..<CInt(4096)).compactMap { descriptor in
    var peer = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = unsafe withUnsafeMutablePointer(to: &peer) { peer in
      unsafe peer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(descriptor, $0, &size) }
    }
    guard result == 0, peer.sin_family == sa_family_t(AF_INET), UInt16(bigEndian: peer.sin_port) == port else {
      return nil
    }
    var value = linger()
    size = socklen_t(MemoryLayout<linger>.size)
    return unsafe getsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, &size) == 0 ? value : nil
  }
}

/// What the producer says of a topic that cannot be asked for, and when.
@Loop
private func answer(to producer: Producer, within limit: Duration) async -> (KafkaError?, MonotonicTime) {
  do throws(KafkaError) {
    _ = try await producer.describe(topic: "topic", within: limit)
    return (nil, .now)
  } catch {
    return (error, .now)
  }
}
