import AccountEvents
import SQLite

/// What has to be known of each record in the spool at the start, without the record.
package struct HeldRecord: Sendable {
  /// Its place in the queue.
  package let sequence: Int64
  /// Its account's.
  package let lane: LaneID
  /// What its event is known by; nil where it is none.
  let mark: AcceptedEvents.Mark?
  /// Since when it has been here; nil where that cannot be read.
  let since: Timestamp?

  /// Reads a row: sequence, since, topic, key or value, headers.
  init(reading row: borrowing Row) throws(SQLiteError) {
    sequence = try row.value(0)
    lane = LaneID(of: try row.value(3))
    since = Timestamp(milliseconds: try row.value(1))
    let (topic, headers): (String, [UInt8]) = (try row.value(2), try row.value(4))
    mark = [EventRecord.Header](packed: headers).flatMap {
      AcceptedEvents.Mark(of: $0, on: Topic(name: topic))
    }
  }
}
