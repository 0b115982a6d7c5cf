import AccountEvents
import PostgreSQL

/// How far erasures are, target by target.
enum PostgreSQLErasures {
  /// Records a step in place of the target's last one; it is the latest again.
  static func record(
    _ step: ErasureStep, of event: EventID, _ hash: AccountHash, with connection: Connection
  ) async throws {
    try await connection.execute(
      """
      INSERT INTO siwa.erasure_step (event_id, target, hash, state, before, affected, after, detail, at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
      ON CONFLICT (event_id, target) DO UPDATE SET number = excluded.number, hash = excluded.hash,
        state = excluded.state, before = excluded.before, affected = excluded.affected, after = excluded.after,
        detail = excluded.detail, at = excluded.at
      """, event.text, step.target, hash.bytes, step.state.rawValue, step.before.map(Int64.init),
      step.affected.map(Int64.init), step.after.map(Int64.init), step.detail, step.time.milliseconds)
  }

  /// The steps so far.
  static func steps(of event: EventID, with connection: Connection) async throws -> [ErasureStep] {
    try await connection.query(
      """
      SELECT target, state, before, affected, after, detail, at FROM siwa.erasure_step WHERE event_id = $1
      ORDER BY number
      """, event.text, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in
      ErasureStep(
        target: try row.value(0), state: try row.choice(1), before: try row.count(2), affected: try row.count(3),
        after: try row.count(4), detail: try row.value(5), time: try row.time(6))
    }
  }
}

extension SealedAnnouncement {
  /// Reads a row: number, consumer, partition, topic, record.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    let read = SealedAnnouncement(
      number: try row.value(0), consumer: try row.value(1), partition: try row.value(2), topic: try row.value(3),
      record: try row.value(4))
    guard let read else { throw .unexpectedValue("an announcement: not of the form in which it was written") }
    self = read
  }
}
