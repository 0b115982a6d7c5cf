package import EventLoop
package import Kafka

/// Where records go that are replayed.
@Loop
package protocol ReplayDestination: AnyObject {
  /// Takes records in their order, and returns once it has all of them.
  func take(_ records: [ConsumedRecord]) async throws(ReplayFailure)
}

/// Records that did not get to where they are replayed to.
package struct ReplayFailure: Error, CustomStringConvertible {
  /// The first of each partition that is not there, or not for certain; those of a partition behind it may be.
  package let first: [Int32: Int64]
  /// How many have failed.
  package let count: Int
  /// Why.
  package let cause: any Error

  /// A failure of all these records.
  package init(of records: [ConsumedRecord], _ cause: any Error) {
    count = records.count
    first = Dictionary(
      records.map { ($0.position.partition, $0.position.offset) }, uniquingKeysWith: { first, _ in first })
    self.cause = cause
  }

  /// What the cause says.
  package var description: String { "\(cause)" }
}

/// A file, which `RecordFileWriter` writes.
@Loop
package final class FileDestination: ReplayDestination {
  private let writer: RecordFileWriter

  /// The file.
  package init(_ writer: RecordFileWriter) { self.writer = writer }

  package func take(_ records: [ConsumedRecord]) async throws(ReplayFailure) {
    do throws(RecordFileError) { try writer.append(records) } catch { throw ReplayFailure(of: records, error) }
  }
}

/// A topic of Kafka's. Records that have one key and stood in one partition are in their order there, too, as keys alone
/// choose the partition, in the way of Java's clients.
@Loop
package final class TopicDestination: ReplayDestination {
  private let producer: Producer
  private let make: (ConsumedRecord) -> KafkaRecord

  /// The topic that `make` names.
  package init(_ producer: Producer, make: @escaping (ConsumedRecord) -> KafkaRecord) {
    (self.producer, self.make) = (producer, make)
  }

  package func take(_ records: [ConsumedRecord]) async throws(ReplayFailure) {
    let results = await producer.send(records.map(make))
    var failed: [ConsumedRecord] = []
    var cause: KafkaError?
    for (record, result) in zip(records, results) {
      guard case .failure(let error) = result else { continue }
      failed.append(record)
      cause = cause ?? error
    }
    if let cause { throw ReplayFailure(of: failed, cause) }
  }
}

extension KafkaRecord {
  /// The record on another topic: its key, value and headers.
  package init(_ record: ConsumedRecord, on topic: String) {
    self.init(topic: topic, key: record.key, value: record.value, headers: record.headers)
  }
}
