import AccountEvents
import SQLite

/// What consumers have done: the ledger, the fences, and the attempts that failed.
final class SQLiteLedger {
  private let reading: Statement
  private let insertion: Statement
  private let fence: Statement
  private let attempt: Statement
  private let firstReading: Statement
  private let success: Statement

  init(_ database: Database) throws(SQLiteError) {
    reading = try database.prepare(
      """
      SELECT
        EXISTS (SELECT 1 FROM ledger WHERE consumer = ?1 AND event_id = ?2),
        EXISTS (
          SELECT 1 FROM fence WHERE consumer = ?1 AND hash = ?3 AND severity >= ?4 AND (at, tie) >= (?5, ?6)),
        (SELECT signed_in_at FROM account WHERE hash = ?3),
        (SELECT count FROM attempt WHERE consumer = ?1 AND event_id = ?2),
        erasure.signed_in_at, erasure.at, erasure.is_final
      FROM (SELECT 1) LEFT JOIN erasure ON erasure.hash = ?3
      """)
    insertion = try database.prepare(
      """
      INSERT INTO ledger (consumer, event_id, hash, outcome, at, topic, partition, "offset")
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """)
    fence = try database.prepare(
      """
      INSERT INTO fence (consumer, hash, severity, at, tie) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET at = excluded.at, tie = excluded.tie WHERE (excluded.at, excluded.tie) > (at, tie)
      """)
    attempt = try database.prepare(
      """
      INSERT INTO attempt (consumer, event_id, count, first_at, last_at, cause) VALUES (?1, ?2, 1, ?3, ?3, ?4)
      ON CONFLICT DO UPDATE SET count = count + 1, last_at = excluded.last_at, cause = excluded.cause
      RETURNING count
      """)
    firstReading = try database.prepare("SELECT first_at FROM attempt WHERE consumer = ? AND event_id = ?")
    success = try database.prepare("DELETE FROM attempt WHERE consumer = ? AND event_id = ?")
  }

  /// What bears on the event.
  func facts(
    of event: EventReference, _ hash: AccountHash, for consumer: ConsumerName
  ) throws(SQLiteError) -> EventFacts {
    let facts = try reading.first(
      consumer.text, event.id.text, hash.bytes, Int64(event.weight.severity), event.occurredAt.milliseconds,
      Int64(event.weight.tie)
    ) { row throws(SQLiteError) in
      let (signIn, before) = (try row.timeIfPresent(2), try row.timeIfPresent(4))
      return EventFacts(
        isSettled: try row.value(0, as: Int64.self) == 1, isOutweighed: try row.value(1, as: Int64.self) == 1,
        signedInAt: [signIn, before].compactMap(\.self).max(),
        erasure: try row.timeIfPresent(5).map { at throws(SQLiteError) in
          ErasureFence(at: at, isFinal: try row.value(6, as: Int64.self) == 1)
        },
        attempts: Int(clamping: try row.value(3, as: Int64?.self) ?? 0))
    }
    guard let facts else { throw .malformed("a row that is always there") }
    return facts
  }

  /// Writes down what became of the event.
  func record(
    _ settlement: Settlement, _ hash: AccountHash, outcome: String, at time: Timestamp, hadAttempts: Bool
  ) throws(SQLiteError) {
    let (event, consumer) = (settlement.event, settlement.consumer)
    try insertion.run(
      consumer.text, event.id.text, hash.bytes, outcome, time.milliseconds, event.origin.topic,
      Int64(event.origin.partition), event.origin.offset)
    if hadAttempts { try success.run(consumer.text, event.id.text) }
  }

  /// Makes void what the event outweighs. An event that covers less than its own severity may be older than the fence
  /// there: that one stays.
  func raiseFence(_ event: EventReference, _ hash: AccountHash, for consumer: ConsumerName) throws(SQLiteError) {
    try fence.run(
      consumer.text, hash.bytes, Int64(event.weight.covers), event.occurredAt.milliseconds, Int64(event.weight.tie))
  }

  /// Counts one more failure.
  func count(_ failure: FailedAttempt) throws(SQLiteError) -> Int {
    let count: Int64? = try attempt.first(
      failure.consumer.text, failure.event.id.text, failure.time.milliseconds, failure.cause
    ) { row throws(SQLiteError) in try row.value(0) }
    guard let count else { throw .malformed("a row that is always there") }
    return Int(clamping: count)
  }

  /// When the first failure was that is counted.
  func firstAttempt(at event: EventID, by consumer: ConsumerName) throws(SQLiteError) -> Timestamp? {
    try firstReading.first(consumer.text, event.text) { row throws(SQLiteError) in try row.time(0) }
  }
}
