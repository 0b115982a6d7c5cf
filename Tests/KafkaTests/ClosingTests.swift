import EventLoop
import Glibc
import Kafka
import Testing

@Suite struct ClosingTests {
  /// librdkafka's handle must not go while a call still uses it.
  @Loop @Test(.timeLimit(.minutes(5))) func closingWaitsForAQuestionThatIsOnItsWay() async throws {
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
    #expect(await answer(to: producer, within: .seconds(120)).0?.code == .closed)
  }

  /// Else the kernel would go on sending for a producer that was closed, or a process that was killed.
  @Loop @Test(.timeLimit(.minutes(5))) func whatWasNotSentEndsWithItsConnection() async throws {
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
