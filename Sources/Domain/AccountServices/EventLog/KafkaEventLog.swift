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
  /// Nil from the end of a dead one until the next.
  private var producer: Producer?
  private var burial: Task<Void, Never>?
  private var isClosed = false

  /// A log that appends with what `producer` makes; `topics` are those that `check` asks for.
  package init(
    topics: [Topic], producer makeProducer: @escaping @Loop () throws(KafkaError) -> Producer
  ) throws(KafkaError) {
    (self.topics, self.makeProducer) = (topics, makeProducer)
    producer = try makeProducer()
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
    let producer: Producer
    do throws(EventLogError) { producer = try living() } catch { return report(.failure(error)) }
    producer.send(record, adding: headers.count) { list in
      for header in headers { list.add(header.name, header.value) }
    } then: { [self] result in
      switch result {
      case .success(let position):
        report(.success(EventLogPosition(partition: position.partition, offset: position.offset)))
      case .failure(let error):
        if error.code == .fatal { bury(producer) }
        report(.failure(EventLogError(error)))
      }
    }
  }

  /// The producer; a new one where the last has died and is gone.
  private func living() throws(EventLogError) -> Producer {
    if let producer { return producer }
    if isClosed { throw EventLogError(.unavailable, reason: "closed", detail: "the log is closed") }
    if burial != nil {
      throw EventLogError(.unavailable, reason: "fatal", detail: "the producer died; its connections are being closed")
    }
    do throws(KafkaError) {
      let producer = try makeProducer()
      self.producer = producer
      return producer
    } catch {
      throw EventLogError(error)
    }
  }

  /// Ends a dead producer. The next one sends nothing before its connections are closed: what the dead one still had on
  /// the wire must not arrive behind what the next one sends.
  private func bury(_ dead: Producer) {
    guard producer === dead, !isClosed else { return }
    producer = nil
    burial = Task(executorPreference: Loop.executor) { await self.end(dead) }
  }

  private func end(_ dead: Producer) async {
    await dead.close(within: .zero)
    burial = nil
  }

  package func check() async throws(EventLogError) {
    let producer = try living()
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

  package func close(within patience: Duration) async {
    isClosed = true
    await producer?.close(within: patience)
    producer = nil
    await burial?.value
  }
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
