import EventLoop
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
