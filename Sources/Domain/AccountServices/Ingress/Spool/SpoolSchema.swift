import AccountEvents
import EventLoop
import Glibc
import SQLite

/// The form of the spool's database.
enum SpoolSchema {
  /// Seven records of an account event fit a page; in pages of 4096 bytes each would waste the half of one.
  static let pageSize = 16_384
  /// Only readers are in anyone's way, for a moment: the directory is one process' own.
  static let busyTimeout = Duration.seconds(5)
  /// The number of the form, which the file carries. Another form gets another number, and the step to it stands here.
  static let version: Int64 = 2

  /// Opens the database in `directory`, or makes it. What is there is checked as a whole: a damaged file is never taken
  /// for an empty one.
  static func open(_ directory: String) throws(SpoolError) -> Database {
    try expectNoLogAlone(directory)
    let (database, found, isNew) = try open(directory, .readWrite(pageSize: pageSize))
    if !isNew, found != 1 { try expect(found, directory) }
    try SpoolError.translating(directory) { () throws(SQLiteError) in
      if !isNew { try database.check() }
      guard isNew || found == 1 else { return }
      try database.transaction { () throws(SQLiteError) in
        if isNew { try makeRecords(in: database) }
        try makeRemovals(in: database)
      }
    }
    return database
  }

  /// Opens the database in `directory` to look at it, whether a process has the spool at the moment or not.
  static func look(into directory: String) throws(SpoolError) -> Database {
    try expectNoLogAlone(directory)
    // SQLite would only say that it cannot open it.
    guard unsafe access(file(in: directory), R_OK) == 0 else {
      let cause = SystemError.current
      throw cause.code == ENOENT
        ? SpoolError(.missing, directory, "there is none")
        : SpoolError(.unusableDirectory, directory, "\(SpoolDirectory.database): \(cause)")
    }
    let (database, found, isEmpty) = try open(directory, .readOnly)
    // As an ingress that starts for the first time makes it.
    if isEmpty, try SpoolDirectory.size(of: log(in: directory), directory) == 0 {
      throw SpoolError(.missing, directory, "there is none: \(SpoolDirectory.database) is empty")
    }
    try expect(found, directory)
    return database
  }

  /// Opens the database in `directory` to read it where the disk has no room for what opening it otherwise needs. Nil where
  /// there is none. Nobody may write to it meanwhile.
  ///
  /// Throws where the database has a log, without which it would not be whole.
  static func lookWithoutRoom(into directory: String) throws(SpoolError) -> Database? {
    guard try SpoolDirectory.size(of: file(in: directory), directory) > 0 else { return nil }
    guard try SpoolDirectory.size(of: log(in: directory), directory) == 0 else {
      throw SpoolError(.full, directory, "the disk has no room to open \(SpoolDirectory.database) and its log")
    }
    let (database, found, isEmpty) = try open(directory, .unchanging)
    if isEmpty { return nil }
    try expect(found, directory)
    return database
  }

  private static func file(in directory: String) -> String { "\(directory)/\(SpoolDirectory.database)" }
  private static func log(in directory: String) -> String { file(in: directory) + "-wal" }

  /// Throws where the log is there, with records perhaps, and the database is not, or is empty: SQLite would remove the log.
  private static func expectNoLogAlone(_ directory: String) throws(SpoolError) {
    guard try SpoolDirectory.size(of: log(in: directory), directory) > 0,
      try SpoolDirectory.size(of: file(in: directory), directory) == 0
    else { return }
    throw SpoolError(.damaged, directory, "\(SpoolDirectory.database) is empty, and its log is not")
  }

  /// What is known of each record that is held, oldest first.
  static func heldRecords(of database: Database) throws(SQLiteError) -> [HeldRecord] {
    var records: [HeldRecord] = []
    try database.prepare("SELECT sequence, since, topic, coalesce(key, value), headers FROM held ORDER BY sequence")
      .forEach { row throws(SQLiteError) in records.append(try HeldRecord(reading: row)) }
    return records
  }

  /// Counts what is there.
  static func content(of database: Database) throws(SQLiteError) -> SpoolFile.Content {
    func count(_ text: StaticString) throws(SQLiteError) -> (records: Int, bytes: Int, last: Int64) {
      try database.prepare(text).first { row throws(SQLiteError) in
        (Int(try row.value(0, as: Int64.self)), Int(try row.value(1, as: Int64.self)), try row.value(2))
      } ?? (0, 0, 0)
    }
    let rows = try count("SELECT count(*), coalesce(sum(size), 0), coalesce(max(sequence), 0) FROM record")
    let gone = try count("SELECT count(*), coalesce(sum(size), 0), coalesce(max(sequence), 0) FROM gone")
    var content = SpoolFile.Content(
      records: rows.records - gone.records, bytes: rows.bytes - gone.bytes, gone: gone.records, goneBytes: gone.bytes,
      lastSequence: rows.last)
    let since = try database.prepare("SELECT since FROM held ORDER BY sequence LIMIT 1").first {
      row throws(SQLiteError) in try row.value(0, as: Int64.self)
    }
    content.oldest = since.flatMap(Timestamp.init(milliseconds:))
    return content
  }

  /// Opens the database, and says of which version it is and whether there is nothing in it, as of one moment.
  private static func open(
    _ directory: String, _ access: Database.Access
  ) throws(SpoolError) -> (database: Database, version: Int64, isEmpty: Bool) {
    try SpoolError.translating(directory) { () throws(SQLiteError) in
      let database = try Database(file(in: directory), access, busyTimeout: busyTimeout)
      return try database.snapshot { () throws(SQLiteError) in
        let tables = try database.prepare("SELECT count(*) FROM sqlite_schema").first { row throws(SQLiteError) in
          try row.value(0, as: Int64.self)
        }
        let version = try database.prepare("PRAGMA user_version").first { row throws(SQLiteError) in
          try row.value(0, as: Int64.self)
        }
        return (database, version ?? 0, tables == 0)
      }
    }
  }

  private static func makeRecords(in database: Database) throws(SQLiteError) {
    try database.execute(
      """
      CREATE TABLE record (
        sequence INTEGER PRIMARY KEY CHECK (sequence > 0),
        since INTEGER NOT NULL,  -- milliseconds since 1970
        size INTEGER NOT NULL CHECK (size > 0),  -- what it counts against the spool's limit
        topic TEXT NOT NULL,
        key BLOB,
        headers BLOB NOT NULL,  -- each name and value after its length, four bytes
        value BLOB NOT NULL
      ) STRICT;
      """)
  }

  /// What is new in the second form. A drain takes records out here and there: to delete each would write a page of 16 KiB
  /// a record, and a disk that does so is what a drain would wait for. So a record is first noted as gone, hundreds to a
  /// page, and its row is deleted later, together with its neighbours.
  private static func makeRemovals(in database: Database) throws(SQLiteError) {
    try database.execute(
      """
      CREATE TABLE gone (  -- taken out for good; the row is still there
        sequence INTEGER PRIMARY KEY,
        size INTEGER NOT NULL
      ) STRICT;
      CREATE VIEW held AS
        SELECT * FROM record WHERE NOT EXISTS (SELECT 1 FROM gone WHERE gone.sequence = record.sequence);
      PRAGMA user_version = 2;
      """)
  }

  private static func expect(_ found: Int64, _ directory: String) throws(SpoolError) {
    guard found <= version else {
      throw SpoolError(
        .newerVersion, directory,
        "\(SpoolDirectory.database) is of version \(found), and this program knows \(version) at most")
    }
    guard found != 1 else {
      throw SpoolError(
        .failed, directory, "\(SpoolDirectory.database) is of version 1, until the ingress starts on it")
    }
    guard found == version else {
      throw SpoolError(.notASpool, directory, "\(SpoolDirectory.database) is not a spool")
    }
  }
}

extension SpoolError {
  /// Runs what uses the database, and says what its failure means for the spool in `directory`.
  static func translating<Value>(
    _ directory: String, _ body: () throws(SQLiteError) -> Value
  ) throws(SpoolError) -> Value {
    do throws(SQLiteError) { return try body() } catch { throw SpoolError(error, directory) }
  }

  /// What an error of the database means for the spool.
  private init(_ error: SQLiteError, _ directory: String) {
    let code: Code =
      switch error.code {
      case .full: .full
      case .corrupt, .notADatabase, .unexpectedValue: .damaged
      case .cantOpen, .readOnly: .unusableDirectory
      case .busy, .ioError, .constraint, .schema, .statementTimeout, .outOfMemory, .other: .failed
      }
    self.init(code, directory, "\(SpoolDirectory.database): \(error)")
  }
}
