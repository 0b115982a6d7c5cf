import AccountEvents
import Cryptography
import SQLite

/// What was decided and is still to be said on Kafka.
final class SQLiteAnnouncements {
  private let database: Database
  private let key: AES256GCM
  private let last: Statement
  private let advance: Statement
  private let insertion: Statement
  private let reading: Statement
  private let readingAll: Statement
  private let removal: Statement

  init(_ database: Database, _ key: AES256GCM) throws(SQLiteError) {
    (self.database, self.key) = (database, key)
    // Not SQLite's AUTOINCREMENT, which would read and write its number for every row.
    last = try database.prepare("SELECT last FROM announcement_number")
    advance = try database.prepare("UPDATE announcement_number SET last = ?")
    insertion = try database.prepare(
      "INSERT INTO announcement (number, consumer, partition, records) VALUES (?, ?, ?, ?)")
    // All are read for it: there are no more than consumers hold events, and an index would cost each of them more.
    reading = try database.prepare(
      """
      SELECT number, consumer, partition, records FROM announcement
      WHERE consumer = ? AND partition = ? AND number > ? ORDER BY number LIMIT ?
      """)
    readingAll = try database.prepare(
      """
      SELECT number, consumer, partition, records FROM announcement WHERE number > ? ORDER BY number LIMIT ?
      """)
    removal = try database.prepare("DELETE FROM announcement WHERE number = ?")
  }

  /// The last number that was ever given. Nobody else gives one before the transaction ends.
  func lastNumber() throws(AccountStoreError) -> Int64 {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try last.first { row throws(SQLiteError) in try row.value(0) } ?? 0
    }
  }

  /// Makes `number` the last one that was given.
  func advance(to number: Int64) throws(SQLiteError) { try advance.run(number) }

  /// Keeps what is to be said of an event under that number.
  func insert(
    _ announcements: [Announcement], number: Int64, of consumer: ConsumerName, partition: Int32
  ) throws(AccountStoreError) {
    let row = try SealedAnnouncements(announcements, number: number, of: consumer, partition: partition, with: key)
    try AccountStoreError.translating { () throws(SQLiteError) in
      try insertion.run(number, consumer.text, Int64(partition), row.records)
    }
  }

  /// The oldest ones of a consumer and partition.
  func read(
    of consumer: ConsumerName, partition: Int32, limit: Int
  ) throws(AccountStoreError) -> WaitingAnnouncements {
    var waiting = WaitingAnnouncements()
    var last = Int64.min
    while true {
      let most = limit - waiting.readable.count
      let rows = try AccountStoreError.translating { () throws(SQLiteError) in
        var rows: [SealedAnnouncements] = []
        try reading.forEach(consumer.text, Int64(partition), last, Int64(most)) { row throws(SQLiteError) in
          rows.append(try SealedAnnouncements(reading: row))
        }
        return rows
      }
      for row in rows { try waiting.add(row, opening: open) }
      guard rows.count == most, waiting.readable.count < limit, let end = rows.last?.number else { return waiting }
      last = end
    }
  }

  /// Those of a consumer and all partitions.
  func readAll(of consumer: ConsumerName) throws(AccountStoreError) -> WaitingAnnouncements {
    var waiting = WaitingAnnouncements()
    var last = Int64.min
    while true {
      let rows = try rows(after: last, limit: 1000)
      guard let end = rows.last?.number else { return waiting }
      for row in rows where row.consumer == consumer { try waiting.add(row, opening: open) }
      last = end
    }
  }

  /// Those of all consumers behind a number.
  func rows(after number: Int64, limit: Int) throws(AccountStoreError) -> [SealedAnnouncements] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      var rows: [SealedAnnouncements] = []
      try readingAll.forEach(number, Int64(limit)) { row throws(SQLiteError) in
        rows.append(try SealedAnnouncements(reading: row))
      }
      return rows
    }
  }

  /// Opens one.
  func open(_ row: SealedAnnouncements) throws(AccountStoreError) -> NumberedAnnouncements { try row.opened(with: key) }

  /// Forgets one; says whether it was there.
  func remove(_ number: Int64) throws(SQLiteError) -> Bool {
    try removal.run(number)
    return database.changes > 0
  }
}

extension SealedAnnouncements {
  /// Reads a row: number, consumer, partition, records.
  fileprivate init(reading row: borrowing Row) throws(SQLiteError) {
    let read = SealedAnnouncements(
      number: try row.value(0), consumer: try row.value(1), partition: try row.value(2),
      records: try row.value(3))
    guard let read else { throw .malformed("an announcement") }
    self = read
  }
}
