package import AccountEvents
package import EventLoop
package import Kafka

/// The log on Kafka. A producer that dies is replaced.
@Loop
package final class KafkaEventLog: EventLog {
  /// Short, because the end of the program waits for a check that is on its way.
  private static let patienceOfCheck = Duration.seconds(2)

  private let topics: [Topic]
  private let producer: RenewableProducer

  /// A log that appends with what `producer` makes; `topics` are those that `check` asks for.
  package init(
    topics: [Topic], producer makeProducer: @escaping @Loop () throws(KafkaError) -> Producer
  ) throws(KafkaError) {
    self.topics = topics
    producer = try RenewableProducer(makeProducer)
  }

  package func append(
    _ record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(
      KafkaRecord(topic: record.topic.name, key: record.key, value: record.value), record.headers, then: report)
  }

  package func append(
    _ record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) { append(record, [], then: report) }

  package func append(
    _ announcement: Announcement, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(
      KafkaRecord(topic: announcement.topic.name, key: announcement.key, value: announcement.value),
      announcement.headers, then: report)
  }

  private func append(
    _ record: KafkaRecord, _ headers: [EventRecord.Header],
    then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    let living: Producer
    do throws(KafkaError) { living = try producer.living() } catch { return report(.failure(EventLogError(error))) }
    living.send(record, adding: headers.count) { list in
      for header in headers { list.add(header.name, header.value) }
    } then: { [producer] result in
      switch result {
      case .success(let position):
        report(.success(EventLogPosition(partition: position.partition, offset: position.offset)))
      case .failure(let error):
        producer.bury(living, after: error)
        report(.failure(EventLogError(error)))
      }
    }
  }

  package func check() async throws(EventLogError) {
    let living: Producer
    do throws(KafkaError) { living = try producer.living() } catch { throw EventLogError(error) }
    for topic in topics {
      let description: TopicDescription
      do throws(KafkaError) {
        description = try await living.describe(topic: topic.name, within: Self.patienceOfCheck)
      } catch {
        throw EventLogError(error, about: topic.name)
      }
      guard description.isReady else {
        throw EventLogError(
          .unavailable, reason: "noLeader", detail: "\(topic.name): a partition has no broker that takes its records")
      }
    }
  }

  package func close(within patience: Duration) async { await producer.close(within: patience) }
}

extension KafkaRecord {
  /// The record as it is sent; its partition follows from the key.
  package init(_ record: EventRecord) {
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
    let isNamed = topic.map { error.detail.hasPrefix($0) } ?? true
    self.init(
      outcome, reason: error.code.rawValue, detail: isNamed ? error.detail : "\(topic ?? ""): \(error.detail)")
  }
}
