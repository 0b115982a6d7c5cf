import AccountEvents
import SQLite

/// What has to be known of each record in the spool at the start, without the record.
package struct HeldRecord: Sendable {
  /// Its place in the queue.
  package let sequence: Int64
  /// Its account's; one of its own where that cannot be read.
  package let lane: LaneID
  /// What its event is known by; nil where it is none, or cannot be read.
  let mark: AcceptedEvents.Mark?
  /// Since when it has been here; nil where that cannot be read.
  let since: Timestamp?

  /// Reads a row: sequence, since, topic, key or value, headers. Of a damaged one there is what can be read.
  init(reading row: borrowing Row) throws(SQLiteError) {
    let sequence: Int64 = try row.value(0)
    self.sequence = sequence
    lane = LaneID(of: try row.intact(3, as: [UInt8].self) ?? Array("\(sequence)".utf8))
    since = try row.intact(1, as: Int64.self).flatMap(Timestamp.init(milliseconds:))
    let headers = try row.intact(4, as: [UInt8].self).flatMap([EventRecord.Header].init(packed:))
    if let headers, let topic = try row.intact(2, as: String.self) {
      mark = AcceptedEvents.Mark(of: headers, on: Topic(name: topic))
    } else {
      mark = nil
    }
  }
}

extension Row {
  /// The value in a column; nil where that is damaged.
  fileprivate func intact<Value: SQLiteValue>(_ column: Int, as type: Value.Type) throws(SQLiteError) -> Value? {
    do throws(SQLiteError) {
      return try value(column, as: type)
    } catch {
      guard error.code == .unexpectedValue else { throw error }
      return nil
    }
  }
}
