package import AccountEvents
import SQLite

/// The events of our own that wait to be published.
final class SQLiteOutbox {
  private let insertion: Statement
  private let counting: Statement
  private let reading: Statement
  private let removal: Statement
  private let taking: Statement
  private let leaving: Statement
  private let database: Database

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    insertion = try database.prepare(
      """
      INSERT INTO outbox (event_id, account, written_at, master_key_id, record) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (event_id) DO NOTHING
      """)
    counting = try database.prepare("SELECT count(*), min(written_at) FROM outbox")
    reading = try database.prepare(
      """
      SELECT event_id, account, written_at, master_key_id, record, number FROM outbox
      WHERE number > ? ORDER BY number LIMIT ?
      """)
    removal = try database.prepare("DELETE FROM outbox WHERE event_id = ?")
    taking = try database.prepare(
      """
      INSERT INTO lease (name, holder, until) VALUES (?1, ?2, ?4)
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
      WHERE lease.holder = excluded.holder OR lease.until <= ?3 OR lease.until - ?4 > ?4 - ?3
      """)
    leaving = try database.prepare("DELETE FROM lease WHERE name = ? AND holder = ?")
  }

  /// Adds an event behind all others.
  func add(_ record: SealedOutboxRecord) throws(SQLiteError) {
    try insertion.run(
      record.id.text, record.account.bytes, record.writtenAt.milliseconds, record.masterKeyID, record.record)
  }

  /// What waits.
  func state() throws(SQLiteError) -> OutboxState {
    let state = try counting.first { row throws(SQLiteError) in
      OutboxState(waiting: try row.count(0) ?? 0, oldest: try row.timeIfPresent(1))
    }
    return state ?? OutboxState(waiting: 0, oldest: nil)
  }

  /// Takes the lease, if it can be had.
  func take(by holder: String, at time: Timestamp, until end: Timestamp) throws(SQLiteError) -> Bool {
    try taking.run(SealedOutboxRecord.lease, holder, time.milliseconds, end.milliseconds)
    return database.changes > 0
  }

  /// Gives it back.
  func leave(_ holder: String) throws(SQLiteError) { try leaving.run(SealedOutboxRecord.lease, holder) }

  /// The first events behind a place.
  func first(_ limit: Int, after place: OutboxPage.Place?) throws(SQLiteError) -> [SealedOutboxRecord] {
    var records: [SealedOutboxRecord] = []
    try reading.forEach(place?.number ?? 0, Int64(limit)) { row throws(SQLiteError) in
      var record = try SealedOutboxRecord(reading: row)
      record.number = try row.value(5)
      records.append(record)
    }
    return records
  }

  /// Removes an event.
  func remove(_ event: EventID) throws(SQLiteError) { try removal.run(event.text) }
}

extension SealedOutboxRecord {
  /// Reads a row: event, account, time, the master key's id, the record.
  init(reading row: borrowing Row) throws(SQLiteError) {
    guard let id = EventID(try row.value(0)), let account = AccountID(bytes: try row.value(1)) else {
      throw .malformed("an event of the outbox")
    }
    self.init(
      id: id, account: account, writtenAt: try row.time(2), masterKeyID: try row.value(3), record: try row.value(4))
  }
}

extension SQLiteAccountStore {
  /// What waits to be published.
  package func outbox() async throws(AccountStoreError) -> OutboxState {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.outbox.state() }
    }
  }

  /// The events that wait, for one holder alone.
  package func takeOutbox(
    by holder: String, at time: Timestamp, until end: Timestamp, after place: OutboxPage.Place?, limit: Int
  ) async throws(AccountStoreError) -> OutboxPage? {
    try await writer.run { file throws(AccountStoreError) in
      let rows = try file.writeRows { () throws(SQLiteError) -> [SealedOutboxRecord]? in
        guard try file.outbox.take(by: holder, at: time, until: end) else { return nil }
        return try file.outbox.first(limit, after: place)
      }
      return rows.map { OutboxPage(opening: $0, of: limit, with: file.keys.master) }
    }
  }

  /// Removes what is published, from the log of the file, too.
  package func removeFromOutbox(_ events: [EventID]) async throws(AccountStoreError) {
    try await writer.run { [readers] file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in for event in events { try file.outbox.remove(event) } }
      file.rememberErased()
      file.forgetErased(holdingOff: readers)
    }
  }

  /// Lets others publish.
  package func leaveOutbox(_ holder: String) async throws(AccountStoreError) {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in try file.outbox.leave(holder) }
    }
  }
}
