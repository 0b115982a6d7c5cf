package import AccountEvents

/// A record in the spool.
package struct SpooledRecord: Sendable, Equatable {
  /// Its place in the queue: what comes later has a higher number.
  package let sequence: Int64
  /// What is to be published.
  package let record: EventRecord
  /// Since when it has been here.
  package let since: Timestamp

  /// A record with its place and its time.
  package init(sequence: Int64, record: EventRecord, since: Timestamp) {
    (self.sequence, self.record, self.since) = (sequence, record, since)
  }

  /// What its row adds to the bytes of the record itself, about.
  private static let rowSize = 64

  /// What it takes of the spool's size, in bytes.
  var size: Int { Self.size(of: record) }

  /// What a record takes of the spool's size, in bytes.
  static func size(of record: EventRecord) -> Int {
    rowSize + record.topic.name.utf8.count + (record.key?.count ?? 0) + record.value.count + record.headers.packedSize
  }
}
