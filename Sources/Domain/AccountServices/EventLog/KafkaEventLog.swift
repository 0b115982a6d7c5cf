package import AccountEvents
package import EventLoop
package import Kafka

/// The log on Kafka.
///
/// A producer that librdkafka declares dead (the cluster lost what it had acknowledged, mostly) is replaced by a new one:
/// otherwise every record would be refused until somebody restarts the program.
@Loop
package final class KafkaEventLog: EventLog {
  /// Short, because the end of the program waits for a check that is on its way.
  private static let patienceOfCheck = Duration.seconds(2)

  private let topics: [Topic]
  private let makeProducer: @Loop () throws(KafkaError) -> Producer
  private var producer: Producer
  private var isClosed = false

  /// A log that appends with what `producer` makes; `topics` are those that `check` asks for.
  package init(
    topics: [Topic], producer makeProducer: @escaping @Loop () throws(KafkaError) -> Producer
  ) throws(KafkaError) {
    (self.topics, self.makeProducer) = (topics, makeProducer)
    producer = try makeProducer()
  }

  package func append(_ record: EventRecord) async throws(EventLogError) -> EventLogPosition {
    let producer = producer
    do throws(KafkaError) {
      let position = try await producer.send(KafkaRecord(record))
      return EventLogPosition(partition: position.partition, offset: position.offset)
    } catch {
      if error.code == .fatal { replace(producer) }
      throw EventLogError(error)
    }
  }

  /// Puts a new producer in the place of a dead one, unless somebody else who was refused has done so.
  private func replace(_ dead: Producer) {
    guard producer === dead, !isClosed else { return }
    do throws(KafkaError) {
      producer = try makeProducer()
    } catch {
      return  // the next one who is refused tries again, and says why to whoever waits
    }
    // Its end takes a moment, which nobody needs to wait for: whoever waited for a record of its has been told.
    Task { _ = await dead.close(within: .zero) }
  }

  package func check() async throws(EventLogError) {
    for topic in topics {
      let description: TopicDescription
      do throws(KafkaError) {
        description = try await producer.describe(topic: topic.name, within: Self.patienceOfCheck)
      } catch {
        throw EventLogError(error, about: topic.name)
      }
      guard description.isReady else {
        throw EventLogError(
          .unavailable, reason: "noLeader", detail: "\(topic.name): a partition has no broker that takes its records")
      }
    }
  }

  package func close(within patience: Duration) async -> Int {
    isClosed = true
    return await producer.close(within: patience)
  }
}

extension KafkaRecord {
  init(_ record: EventRecord) {
    self.init(
      topic: record.topic.name, key: record.key, value: record.value,
      headers: record.headers.map { KafkaHeader($0.name, $0.value) })
  }
}

extension EventLogError {
  init(_ error: KafkaError, about topic: String? = nil) {
    let outcome: Outcome =
      switch error.consequence {
      case .retriable, .fatal: .unavailable
      case .uncertain: .uncertain
      case .permanent: .refused
      }
    self.init(
      outcome, reason: error.code.rawValue, detail: topic.map { "\($0): \(error.detail)" } ?? error.detail)
  }
}
