package import AccountEvents
package import AccountServices
package import EventLoop
package import Kafka

/// A log that puts what is said onto a `MemoryCluster`, and fails when a test says so.
@Loop
package final class ClusterLog: EventLog {
  package typealias Report = @Loop (Result<EventLogPosition, EventLogError>) -> Void

  private let cluster: MemoryCluster
  /// Why a record is not taken; nil where it is.
  package var fault: (KafkaRecord) -> EventLogError? = { _ in nil }
  /// Why a record is not taken that is appended alone; nil where that is the same.
  package var faultAlone: ((KafkaRecord) -> EventLogError?)?
  /// Whether whoever appends was killed: nothing arrives any more, and nobody is told.
  package var isGone = false
  /// Whether records wait for `release`.
  package var isHolding = false
  private var held: [(record: KafkaRecord, report: Report)] = []

  package init(_ cluster: MemoryCluster) { self.cluster = cluster }

  /// How many records wait.
  package var waiting: Int { held.count }

  /// Takes what waits, and all that comes.
  package func release() {
    isHolding = false
    let records = held
    held = []
    for (record, report) in records { append(record, then: report) }
  }

  package func append(_ record: EventRecord, then report: @escaping Report) {
    append(
      KafkaRecord(
        topic: record.topic.name, key: record.key, value: record.value,
        headers: record.headers.map { KafkaHeader($0.name, $0.value) }), then: report)
  }

  package func append(alone record: KafkaRecord, then report: @escaping Report) {
    append(record, faultAlone ?? fault, then: report)
  }

  package func append(_ record: KafkaRecord, then report: @escaping Report) { append(record, fault, then: report) }

  private func append(
    _ record: KafkaRecord, _ fault: (KafkaRecord) -> EventLogError?, then report: @escaping Report
  ) {
    if isHolding || isGone { return held.append((record, report)) }
    if let fault = fault(record) { return report(.failure(fault)) }
    let offset = cluster.append(record, to: 0)
    report(.success(EventLogPosition(partition: 0, offset: offset)))
  }

  package func check() async throws(EventLogError) {}

  package func close(within patience: Duration) async {
    for (_, report) in held { report(.failure(EventLogError(.uncertain, reason: "closed", detail: "closed"))) }
    held = []
  }
}
