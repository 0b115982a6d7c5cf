import AccountEvents
import PostgreSQL

extension PostgreSQLAccountStore {
  /// What waits to be published.
  func outbox() async throws(AccountStoreError) -> OutboxState {
    let state = try await database.read { connection in
      try await connection.first("SELECT count(*), min(written_at) FROM siwa.outbox") { row throws(PostgreSQLError) in
        OutboxState(waiting: try row.count(0) ?? 0, oldest: try row.timeIfPresent(1))
      }
    }
    return state ?? OutboxState(waiting: 0, oldest: nil)
  }

  /// The events that wait, for one holder alone.
  func takeOutbox(
    by holder: String, at time: Timestamp, until end: Timestamp, after place: OutboxPage.Place?, limit: Int
  ) async throws(AccountStoreError) -> OutboxPage? {
    var batch = Batch()
    batch.append(
      """
      INSERT INTO siwa.lease (name, holder, until) VALUES ($1, $2, $4)
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
      WHERE lease.holder = excluded.holder OR lease.until <= $3 OR lease.until - $4 > $4 - $3
      """, SealedOutboxRecord.lease, holder, time.milliseconds, end.milliseconds)
    batch.append(
      """
      SELECT event_id, account, written_at, master_key_id, record, number FROM siwa.outbox
      WHERE number > $1 ORDER BY number LIMIT $2
      """, place?.number ?? 0, Int64(limit))
    let taking = batch
    let rows = try await database.write { connection in
      var rows: [SealedOutboxRecord] = []
      let counts = try await connection.run(taking) { execution, row throws(PostgreSQLError) in
        guard execution == 1 else { return }
        var record = try SealedOutboxRecord(reading: row)
        record.number = try row.value(5)
        rows.append(record)
      }
      return counts[0] == 1 ? rows : nil
    }
    return rows.map { OutboxPage(opening: $0, of: limit, with: keyed.current.value.master) }
  }

  /// Removes what is published.
  func removeFromOutbox(_ events: [EventID]) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute(
        "DELETE FROM siwa.outbox WHERE event_id = ANY ($1)", PostgreSQLArray(events.map(\.text)))
    }
  }

  /// Lets others publish.
  func leaveOutbox(_ holder: String) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute(
        "DELETE FROM siwa.lease WHERE name = $1 AND holder = $2", SealedOutboxRecord.lease, holder)
    }
  }
}

extension Batch {
  /// Adds an event behind all others of its account, whose lock is held. One that waits already is the same.
  mutating func add(_ record: SealedOutboxRecord) {
    append(
      """
      INSERT INTO siwa.outbox (event_id, account, written_at, master_key_id, record) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (event_id) DO NOTHING
      """, record.id.text, record.account.bytes, record.writtenAt.milliseconds, record.masterKeyID, record.record)
  }
}

extension SealedOutboxRecord {
  /// Reads a row: event, account, time, the master key's id, the record.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let id = EventID(try row.value(0)), let account = AccountID(bytes: try row.value(1)) else {
      throw .unexpectedValue("an event of the outbox")
    }
    self.init(
      id: id, account: account, writtenAt: try row.time(2), masterKeyID: try row.value(3), record: try row.value(4))
  }
}
