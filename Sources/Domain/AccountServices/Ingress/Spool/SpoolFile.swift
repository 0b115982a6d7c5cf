import AccountEvents
import EventLoop
import Glibc
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
    /// What was taken out, and whose rows are still there.
    var gone = 0
    var goneBytes = 0
    var oldest: Timestamp?
    /// The highest number in it, or ever given since it was opened.
    var lastSequence: Int64 = 0
  }

  /// What it holds now.
  private(set) var content = Content()
  private let path: String
  private var reserve: SpoolReserve
  let database: Database
  private let insertion: Statement
  private let removal: Statement
  private let reading: Statement
  private let readingOne: Statement
  private let oldest: Statement
  private let nextGone: Statement
  private let sweepingRecords: Statement
  private let sweepingGone: Statement
  /// A place before which nothing is held.
  private var beginning: Int64 = 0

  /// How many rows of what is gone may wait for their neighbours to go too, and how many bytes: what a drain has under way
  /// lies between them.
  private static let mostGone = (rows: 2048, bytes: 4 << 20)
  /// How many of them are deleted in one transaction, and about how many bytes, so that the database's log stays small.
  private static let sweep = (rows: 256, bytes: 1 << 20)

  /// Opens the database in a directory that is ours, or makes it. What is there is checked as a whole.
  ///
  /// On a full disk the reserve is given up for that, and taken again as soon as there is room.
  init(in directory: String) throws(SpoolError) {
    path = directory
    var reserve: SpoolReserve
    do throws(SystemError) {
      reserve = try SpoolReserve("\(directory)/reserve")
    } catch {
      throw SpoolError(
        [ENOSPC, EDQUOT].contains(error.code) ? .full : .unusableDirectory, directory, "reserve: \(error)")
    }
    let database: Database
    do throws(SpoolError) {
      database = try Self.openDatabase(directory)
    } catch {
      guard error.code == .full else { throw error }
      reserve.giveUp()
      database = try Self.openDatabase(directory)
      reserve.take()
    }
    self.reserve = reserve
    self.database = database
    (insertion, removal, reading, readingOne, oldest) = try SpoolError.translating(directory) {
      () throws(SQLiteError) in
      (
        try database.prepare(
          "INSERT INTO record (sequence, since, size, topic, key, headers, value) VALUES (?, ?, ?, ?, ?, ?, ?)"),
        try database.prepare(
          "INSERT INTO gone (sequence, size) SELECT sequence, size FROM held WHERE sequence = ? RETURNING size"),
        try database.prepare(
          "SELECT sequence, since, topic, key, headers, value FROM held WHERE sequence > ? ORDER BY sequence LIMIT ?"),
        try database.prepare("SELECT sequence, since, topic, key, headers, value FROM held WHERE sequence = ?"),
        try database.prepare("SELECT sequence, since FROM held WHERE sequence >= ? ORDER BY sequence LIMIT 1")
      )
    }
    (nextGone, sweepingRecords, sweepingGone) = try SpoolError.translating(directory) { () throws(SQLiteError) in
      (
        try database.prepare("SELECT sequence, size FROM gone ORDER BY sequence LIMIT ?"),
        try database.prepare(
          "DELETE FROM record WHERE sequence IN (SELECT sequence FROM gone WHERE sequence <= ?)"),
        try database.prepare("DELETE FROM gone WHERE sequence <= ?")
      )
    }
    content = try SpoolError.translating(directory) { () throws(SQLiteError) in try SpoolSchema.content(of: database) }
  }

  /// Opens the database. Throws `.full` too where the disk has no room for the names of its log and its shared memory:
  /// SQLite then opens them as if they had to be there, and says only that they are not.
  private static func openDatabase(_ directory: String) throws(SpoolError) -> Database {
    do throws(SpoolError) { return try SpoolSchema.open(directory) } catch {
      guard error.code == .unusableDirectory, SpoolDirectory.takesNoFile(directory) else { throw error }
      throw SpoolError(.full, directory, "the disk has no room for another file: \(error.detail)")
    }
  }

  /// Makes the changes durable, all of them or none.
  func commit(_ changes: Changes) throws(SpoolError) -> Content {
    let inserts = !changes.inserts.isEmpty
    if inserts, try !hasReserve() {
      if content.gone > 0 { try makeRoom() }
      guard try hasReserve() else { throw SpoolError(.full, path, "the disk is full") }
    }
    do throws(SpoolError) {
      return try write(changes)
    } catch {
      guard error.code == .full, !inserts || content.gone > 0 else { throw error }
      try makeRoom()
      if inserts { guard try hasReserve() else { throw error } }
      return try write(changes)
    }
  }

  /// Whether the reserve is there, or as much room in the file.
  private func hasReserve() throws(SpoolError) -> Bool {
    reserve.take()
    if reserve.isThere { return true }
    return try freeBytes() >= SpoolReserve.size
  }

  /// Tries whether a record could be written, without one.
  func probe() throws(SpoolError) {
    guard try hasReserve() else { throw SpoolError(.full, path, "the disk is full") }
    try SpoolError.translating(path) { () throws(SQLiteError) in
      // What it is already: that is a page to be written and synced.
      try database.transaction { () throws(SQLiteError) in try database.execute("PRAGMA user_version = 2") }
    }
  }

  /// Gives the reserve up, so that what was taken out can make room.
  private func makeRoom() throws(SpoolError) {
    reserve.giveUp()
    // What the log holds goes into the file, and the log begins anew.
    _ = try SpoolError.translating(path) { () throws(SQLiteError) in try database.truncateLog() }
    try sweepAll()
  }

  private func write(_ changes: Changes) throws(SpoolError) -> Content {
    var (after, first) = (content, beginning)
    try SpoolError.translating(path) { () throws(SQLiteError) in
      try database.transaction { () throws(SQLiteError) in
        // What goes makes room for what comes.
        if after.gone > Self.mostGone.rows || after.goneBytes > Self.mostGone.bytes { try sweepSome(&after) }
        for sequence in changes.removals {
          let size: Int64? = try removal.first(sequence) { row throws(SQLiteError) in try row.value(0) }
          guard let size else { continue }
          after.records -= 1
          after.bytes -= Int(size)
          after.gone += 1
          after.goneBytes += Int(size)
        }
        for spooled in changes.inserts {
          try insert(spooled)
          after.records += 1
          after.bytes += spooled.size
          after.lastSequence = max(after.lastSequence, spooled.sequence)
        }
        let found = try oldest.first(first) { row throws(SQLiteError) -> (Int64, Int64) in
          (try row.value(0), try row.value(1))
        }
        after.oldest = found.flatMap { Timestamp(milliseconds: $0.1) }
        first = found?.0 ?? after.lastSequence
      }
    }
    (content, beginning) = (after, first)
    return after
  }

  /// Deletes the oldest rows of what is gone.
  private func sweepSome(_ content: inout Content) throws(SQLiteError) {
    var (last, rows, bytes): (Int64, Int, Int) = (0, 0, 0)
    try nextGone.forEach(Int64(Self.sweep.rows)) { row throws(SQLiteError) in
      guard bytes < Self.sweep.bytes else { return }
      last = try row.value(0)
      rows += 1
      bytes += Int(try row.value(1, as: Int64.self))
    }
    try sweepingRecords.run(last)
    try sweepingGone.run(last)
    content.gone -= rows
    content.goneBytes -= bytes
  }

  /// Deletes all rows of what is gone.
  private func sweepAll() throws(SpoolError) {
    while content.gone > 0 {
      var after = content
      try SpoolError.translating(path) { () throws(SQLiteError) in
        try database.transaction { () throws(SQLiteError) in try sweepSome(&after) }
      }
      content = after
    }
  }

  /// The records behind a place, oldest first, and what cannot be read there. No records: there are none.
  func read(after sequence: Int64, limit: Int) throws(SpoolError) -> SpoolPage {
    var (page, place, rows) = (SpoolPage(), max(sequence, beginning - 1), limit)
    while page.records.isEmpty, rows == limit {
      rows = 0
      try SpoolError.translating(path) { () throws(SQLiteError) in
        try reading.forEach(place, Int64(limit)) { row throws(SQLiteError) in
          rows += 1
          place = try row.value(0)
          try page.add(row)
        }
      }
    }
    return page
  }

  /// The records of these numbers, in their order, and what cannot be read of them.
  func read(_ sequences: [Int64]) throws(SpoolError) -> SpoolPage {
    var page = SpoolPage()
    try SpoolError.translating(path) { () throws(SQLiteError) in
      for sequence in sequences {
        try readingOne.forEach(sequence) { row throws(SQLiteError) in try page.add(row) }
      }
    }
    return page
  }

  /// What is known of each record, oldest first.
  func heldRecords() throws(SpoolError) -> [HeldRecord] {
    try SpoolError.translating(path) { () throws(SQLiteError) in try SpoolSchema.heldRecords(of: database) }
  }

  /// Deletes what is gone, and gives the space back where nothing is held any more: no page of the past stays, in the file
  /// or in the log. `isDone` is false where a reader is in the way.
  func shrink() throws(SpoolError) -> (content: Content, isDone: Bool) {
    try sweepAll()
    guard content.records == 0 else { return (content, true) }
    let isDone = try SpoolError.translating(path) { () throws(SQLiteError) in
      // Copies what there is, which is nothing.
      try database.execute("VACUUM")
      return try database.truncateLog()
    }
    return (content, isDone)
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
