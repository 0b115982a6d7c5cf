package import AccountEvents
package import EventLoop
package import Kafka
package import Telemetry

/// The log on Kafka. A producer that dies is replaced.
///
/// A broker refuses a batch as a whole: for its size, where the topic takes less than `max.message.bytes` is by default, or
/// for one of its records. What was refused is appended alone, by a second producer, which makes no batches. Most programs
/// never have one.
@Loop
package final class KafkaEventLog: EventLog {
  /// Short, because the end of the program waits for a check that is on its way.
  private static let patienceOfCheck = Duration.seconds(2)

  /// Whether a producer sends records together.
  package enum Batching: Sendable {
    /// As many as wait.
    case many
    /// Each by itself.
    case none
  }

  private let topics: [Topic]
  private let makeProducer: @Loop (Batching) throws(KafkaError) -> Producer
  private let producer: RenewableProducer
  /// Nil until something had to be appended alone.
  private var single: RenewableProducer?
  private var isClosed = false

  /// A log that appends with what `producer` makes; `topics` are those that `check` asks for.
  package init(
    topics: [Topic], producer makeProducer: @escaping @Loop (Batching) throws(KafkaError) -> Producer
  ) throws(KafkaError) {
    (self.topics, self.makeProducer) = (topics, makeProducer)
    producer = try RenewableProducer { () throws(KafkaError) in try makeProducer(.many) }
  }

  /// A log on the cluster of these properties. Whoever appends is answered within `deadline`.
  package convenience init(
    topics: [Topic], _ kafka: KafkaConfiguration, deadline: Duration, registry: MetricsRegistry, logger: Logger
  ) throws(KafkaError) {
    let metrics = KafkaMetrics(registry)
    let single = try kafka.with([("batch.num.messages", "1")])
    try self.init(topics: topics) { (batching: Batching) throws(KafkaError) in
      switch batching {
      case .many:
        let producer = try Producer(kafka, deadline: deadline, log: logger.forKafka)
        producer.onStatistics = { metrics.note($0, after: $1) }
        return producer
      case .none: return try Producer(single, deadline: deadline, log: logger.forKafka)
      }
    }
  }

  package func append(
    _ record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(
      KafkaRecord(topic: record.topic.name, key: record.key, value: record.value), record.headers, by: producer,
      then: report)
  }

  package func append(
    alone record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(
      alone: KafkaRecord(topic: record.topic.name, key: record.key, value: record.value), record.headers, then: report)
  }

  package func append(
    alone record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) { append(alone: record, [], then: report) }

  private func append(
    alone record: KafkaRecord, _ headers: [EventRecord.Header],
    then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    let single: RenewableProducer
    do throws(KafkaError) { single = try singleProducer() } catch {
      return report(.failure(EventLogError(ofNoProducer: error)))
    }
    append(record, headers, by: single, then: report)
  }

  private func singleProducer() throws(KafkaError) -> RenewableProducer {
    if let single { return single }
    if isClosed { throw KafkaError(.closed, detail: "the log is closed") }
    let single = try RenewableProducer { [makeProducer] () throws(KafkaError) in try makeProducer(.none) }
    self.single = single
    return single
  }

  package func append(
    _ record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) { append(record, [], by: producer, then: report) }

  package func append(
    _ announcement: Announcement, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    append(
      KafkaRecord(topic: announcement.topic.name, key: announcement.key, value: announcement.value),
      announcement.headers, by: producer, then: report)
  }

  private func append(
    _ record: KafkaRecord, _ headers: [EventRecord.Header], by producer: RenewableProducer,
    then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) {
    let living: Producer
    do throws(KafkaError) { living = try producer.living() } catch {
      return report(.failure(EventLogError(ofNoProducer: error)))
    }
    living.send(record, adding: headers.count) { list in
      for header in headers { list.add(header.name, header.value) }
    } then: { result in
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

  package func close(within patience: Duration) async {
    isClosed = true
    let end = Loop.now + patience
    await producer.close(within: patience)
    await single?.close(within: max(end - Loop.now, .zero))
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
  /// There is no producer, and none can be made, as where a certificate's file is gone: that says nothing of the record.
  fileprivate init(ofNoProducer error: KafkaError) {
    self.init(.unavailable, reason: error.code.rawValue, detail: error.detail)
  }

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
