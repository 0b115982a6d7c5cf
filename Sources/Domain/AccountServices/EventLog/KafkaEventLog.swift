package import AccountEvents
package import EventLoop
package import Kafka

/// The log on Kafka.
@Loop
package final class KafkaEventLog: EventLog {
  /// Short, because the end of the program waits for a check that is on its way.
  private static let patienceOfCheck = Duration.seconds(2)

  private let producer: Producer
  private let topics: [Topic]

  /// A log that appends with `producer`; `topics` are those that `check` asks for.
  package init(_ producer: Producer, topics: [Topic]) {
    self.producer = producer
    self.topics = topics
  }

  package func append(_ record: EventRecord) async throws(EventLogError) -> EventLogPosition {
    do throws(KafkaError) {
      let position = try await producer.send(KafkaRecord(record))
      return EventLogPosition(partition: position.partition, offset: position.offset)
    } catch {
      throw EventLogError(error)
    }
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

  package func close(within patience: Duration) async -> Int { await producer.close(within: patience) }
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
