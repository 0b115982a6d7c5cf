import AccountEvents
import EventLoop
import SQLite

/// The spool's database. Its calls block: they are made on the spool's thread.
final class SpoolFile {
  /// What changes in one transaction.
  struct Changes: Sendable {
    var inserts: [SpooledRecord] = []
    var removals: [Int64] = []
  }

  /// What it holds.
  struct Content: Sendable, Equatable {
    var records = 0
    var bytes = 0
    var oldest: Timestamp?
    /// The highest number in it, or ever given since it was opened.
    var lastSequence: Int64 = 0
  }

  /// What it holds now.
  private(set) var content = Content()
  private let path: String
  private let lock: SpoolDirectory
  private var reserve: SpoolReserve
  let database: Database
  private let insertion: Statement
  private let removal: Statement
  private let reading: Statement
  private let oldest: Statement

  /// Takes the directory, and opens the database in it or makes it. What is there is checked as a whole.
  init(in directory: String) throws(SpoolError) {
    path = directory
    lock = try SpoolDirectory(taking: directory)
    do throws(SystemError) {
      reserve = try SpoolReserve("\(directory)/reserve")
    } catch {
      throw SpoolError(.unusableDirectory, directory, "reserve: \(error)")
    }
    let database = try SpoolSchema.open(directory)
    self.database = database
    (insertion, removal, reading, oldest, content) = try SpoolError.translating(directory) { () throws(SQLiteError) in
      (
        try database.prepare(
          "INSERT INTO record (sequence, since, size, topic, key, headers, value) VALUES (?, ?, ?, ?, ?, ?, ?)"),
        try database.prepare("DELETE FROM record WHERE sequence = ? RETURNING size"),
        try database.prepare(
          """
          SELECT sequence, since, topic, key, headers, value FROM record WHERE sequence > ? ORDER BY sequence LIMIT ?
          """),
        try database.prepare("SELECT since FROM record ORDER BY sequence LIMIT 1"),
        try SpoolSchema.content(of: database)
      )
    }
  }

  /// Makes the changes durable, all of them or none.
  func commit(_ changes: Changes) throws(SpoolError) -> Content {
    if !changes.inserts.isEmpty {
      reserve.take()
      if !reserve.isThere, try freeBytes() < SpoolReserve.size {
        throw SpoolError(.full, path, "the disk is full")
      }
    }
    do throws(SpoolError) {
      return try write(changes)
    } catch {
      guard error.code == .full, changes.inserts.isEmpty else { throw error }
      reserve.giveUp()
      // What the log holds goes into the file, and the log begins anew.
      _ = try SpoolError.translating(path) { () throws(SQLiteError) in try database.truncateLog() }
      return try write(changes)
    }
  }

  private func write(_ changes: Changes) throws(SpoolError) -> Content {
    var after = content
    try SpoolError.translating(path) { () throws(SQLiteError) in
      try database.transaction { () throws(SQLiteError) in
        // What goes makes room for what comes.
        for sequence in changes.removals {
          let size: Int64? = try removal.first(sequence) { row throws(SQLiteError) in try row.value(0) }
          guard let size else { continue }
          after.records -= 1
          after.bytes -= Int(size)
        }
        for spooled in changes.inserts {
          try insert(spooled)
          after.records += 1
          after.bytes += spooled.size
          after.lastSequence = max(after.lastSequence, spooled.sequence)
        }
        let since = try oldest.first { row throws(SQLiteError) in try row.value(0, as: Int64.self) }
        after.oldest = since.flatMap(Timestamp.init(milliseconds:))
      }
    }
    content = after
    return after
  }

  /// The records behind a place, oldest first.
  func read(after sequence: Int64, limit: Int) throws(SpoolError) -> [SpooledRecord] {
    var records: [SpooledRecord] = []
    try SpoolError.translating(path) { () throws(SQLiteError) in
      try reading.forEach(sequence, Int64(limit)) { row throws(SQLiteError) in
        records.append(try SpooledRecord(reading: row))
      }
    }
    return records
  }

  /// How many records of each key there are; a record without one counts under its value.
  func heldKeys() throws(SpoolError) -> [(key: [UInt8], count: Int)] {
    var keys: [(key: [UInt8], count: Int)] = []
    try SpoolError.translating(path) { () throws(SQLiteError) in
      try database.prepare("SELECT coalesce(key, value), count(*) FROM record GROUP BY 1").forEach {
        row throws(SQLiteError) in
        keys.append((key: try row.value(0), count: Int(try row.value(1, as: Int64.self))))
      }
    }
    return keys
  }

  /// Gives the space back where nothing is held any more: no page of the past stays, in the file or in the log. False
  /// where a reader is in the way.
  func shrink() throws(SpoolError) -> Bool {
    try SpoolError.translating(path) { () throws(SQLiteError) in
      // Copies what there is, which is nothing.
      try database.execute("VACUUM")
      return try database.truncateLog()
    }
  }

  /// What the file has of room in itself, where records have gone.
  private func freeBytes() throws(SpoolError) -> Int {
    try SpoolError.translating(path) { () throws(SQLiteError) in
      let pages = try database.prepare("PRAGMA freelist_count").first { row throws(SQLiteError) in
        try row.value(0, as: Int64.self)
      }
      return Int(pages ?? 0) * SpoolSchema.pageSize
    }
  }

  private func insert(_ spooled: SpooledRecord) throws(SQLiteError) {
    let record = spooled.record
    try insertion.run(
      spooled.sequence, spooled.since.milliseconds, Int64(spooled.size), record.topic.name, record.key,
      record.headers.packed, record.value)
  }
}

extension SpooledRecord {
  /// Reads a row: sequence, since, topic, key, headers, value.
  init(reading row: borrowing Row) throws(SQLiteError) {
    let milliseconds: Int64 = try row.value(1)
    guard let since = Timestamp(milliseconds: milliseconds),
      let headers = [EventRecord.Header](packed: try row.value(4))
    else { throw SQLiteError.unexpectedValue("a record in the spool is not of the form in which it was written") }
    self.init(
      sequence: try row.value(0),
      record: EventRecord(
        topic: Topic(name: try row.value(2)), key: try row.value(3), value: try row.value(5), headers: headers),
      since: since)
  }
}
