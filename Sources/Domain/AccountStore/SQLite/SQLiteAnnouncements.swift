import AccountEvents
import Cryptography
import SQLite

/// What was decided and is still to be said on Kafka. Each record is sealed as a whole: its key is a person's name.
final class SQLiteAnnouncements {
  private let key: AES256GCM
  private let last: Statement
  private let insertion: Statement
  private let reading: Statement
  private let removal: Statement

  init(_ database: Database, _ key: AES256GCM) throws(SQLiteError) {
    self.key = key
    last = try database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'announcement'")
    insertion = try database.prepare(
      "INSERT INTO announcement (number, consumer, partition, topic, record) VALUES (?, ?, ?, ?, ?)")
    reading = try database.prepare(
      """
      SELECT number, topic, record FROM announcement WHERE consumer = ? AND partition = ? ORDER BY number LIMIT ?
      """)
    removal = try database.prepare("DELETE FROM announcement WHERE number = ?")
  }

  /// The last number that was ever given. Nobody else gives one before the transaction ends.
  func lastNumber() throws(AccountStoreError) -> Int64 {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try last.first { row throws(SQLiteError) in try row.value(0) } ?? 0
    }
  }

  /// Keeps an announcement under that number.
  func insert(
    _ announcement: Announcement, number: Int64, of consumer: ConsumerName, partition: Int32
  ) throws(AccountStoreError) {
    let record = try key.seal(
      announcement.packed, for: .announcement(number, of: consumer, partition, announcement.topic))
    try AccountStoreError.translating { () throws(SQLiteError) in
      try insertion.run(number, consumer.text, Int64(partition), announcement.topic.name, record)
    }
  }

  /// The oldest ones of a consumer and partition.
  func read(
    of consumer: ConsumerName, partition: Int32, limit: Int
  ) throws(AccountStoreError) -> [NumberedAnnouncement] {
    var rows: [(number: Int64, topic: Topic, record: [UInt8])] = []
    try AccountStoreError.translating { () throws(SQLiteError) in
      try reading.forEach(consumer.text, Int64(partition), Int64(limit)) { row throws(SQLiteError) in
        rows.append((try row.value(0), Topic(name: try row.value(1)), try row.value(2)))
      }
    }
    var announcements: [NumberedAnnouncement] = []
    for row in rows {
      let packed = try key.open(row.record, from: .announcement(row.number, of: consumer, partition, row.topic))
      guard let announcement = Announcement(packed: packed, topic: row.topic) else {
        throw AccountStoreError(.damaged, "announcement \(row.number): not of the form in which it was written")
      }
      announcements.append(NumberedAnnouncement(number: row.number, announcement: announcement))
    }
    return announcements
  }

  /// Forgets one.
  func remove(_ number: Int64) throws(SQLiteError) { try removal.run(number) }
}
