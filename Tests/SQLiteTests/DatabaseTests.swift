import EventLoop
import Glibc
import SQLite
import TestSupport
import Testing

/// The file, and who may have it.
@Suite struct DatabaseTests {
  private let files = TemporaryDirectory()
  private var path: String { files.path + "/test.sqlite" }

  private func open(_ path: String? = nil) throws -> Database {
    try Database(path ?? self.path, .readWrite(pageSize: 4096), busyTimeout: .zero)
  }

  /// The database with a table of names in it, `count` of them.
  private func filled(_ count: Int) throws -> Database {
    let database = try open()
    try database.execute("CREATE TABLE person (name TEXT NOT NULL) STRICT")
    let insertion = try database.prepare("INSERT INTO person (name) VALUES (?)")
    try database.transaction { () throws(SQLiteError) in
      for number in 0..<count { try insertion.run("person \(number) \(String(repeating: "x", count: 200))") }
    }
    return database
  }

  private func count(in database: Database) throws -> Int64? {
    try database.prepare("SELECT count(*) FROM person").first { row throws(SQLiteError) in try row.value(0) }
  }

  private func mode(of name: String) -> mode_t {
    var status = stat()
    return unsafe stat(files.path + "/" + name, &status) == 0 ? status.st_mode & 0o777 : 0
  }

  private func contents(_ name: String) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 10 << 20)
    let descriptor = unsafe Glibc.open(files.path + "/" + name, O_RDONLY)
    let count = unsafe read(descriptor, &bytes, bytes.count)
    close(descriptor)
    return Array(bytes.prefix(max(count, 0)))
  }

  private func code(_ body: () throws -> Void) -> SQLiteError.Code? {
    #expect(throws: SQLiteError.self, performing: body)?.code
  }

  @Test func nobodyElseReadsItsFiles() throws {
    let database = try filled(10)
    for name in ["test.sqlite", "test.sqlite-wal", "test.sqlite-shm"] { #expect(mode(of: name) == 0o600, "\(name)") }
    _ = database
  }

  @Test func isAsDurableAndStrictAsItPromises() throws {
    let database = try open()
    let pragmas: [(StaticString, Int64)] = [
      ("PRAGMA synchronous", 2), ("PRAGMA foreign_keys", 1), ("PRAGMA secure_delete", 1), ("PRAGMA trusted_schema", 0),
      ("PRAGMA temp_store", 2), ("PRAGMA journal_size_limit", 4 << 20), ("PRAGMA wal_autocheckpoint", 1024),
      ("PRAGMA page_size", 4096), ("PRAGMA cell_size_check", 1), ("PRAGMA busy_timeout", 0),
    ]
    for (pragma, value) in pragmas {
      let found: Int64? = try database.prepare(pragma).first { row throws(SQLiteError) in try row.value(0) }
      #expect(found == value, "\(pragma)")
    }
    let mode: String? = try database.prepare("PRAGMA journal_mode").first { row throws(SQLiteError) in try row.value(0)
    }
    #expect(mode == "wal")
  }

  @Test(arguments: ["file:test?mode=memory", ":memory:", "a b%20c.sqlite"])
  func everyNameIsTheNameOfAFile(name: String) throws {
    try open(files.path + "/" + name).execute("CREATE TABLE number (value INTEGER) STRICT")
    #expect(mode(of: name) == 0o600)
  }

  @Test func aFileThatOthersWriteIsNotOurs() throws {
    _ = files.write("test.sqlite", "", mode: 0o666)
    #expect(code { _ = try open() } == .cantOpen)
    #expect(code { _ = try open(files.path) } == .cantOpen)
    #expect(code { _ = try open(files.path + "/nowhere/test.sqlite") } == .cantOpen)
  }

  @Test func lookingMakesNoFile() throws {
    #expect(code { _ = try Database(path, .readOnly, busyTimeout: .zero) } == .cantOpen)
    #expect(unsafe access(path, F_OK) != 0)
  }

  @Test func whoOnlyLooksCannotWrite() throws {
    let database = try filled(3)
    let reader = try Database(path, .readOnly, busyTimeout: .zero)
    #expect(try count(in: reader) == 3)
    #expect(code { try reader.execute("DELETE FROM person") } == .readOnly)
    #expect(try count(in: database) == 3)
  }

  @Test func whatIsNoDatabaseIsNotTakenForOne() throws {
    _ = files.write("test.sqlite", String(repeating: "no database", count: 100))
    #expect(code { _ = try open() } == .notADatabase)
    #expect(contents("test.sqlite").count == 1100, "it is left as it was")
  }

  @Test func damageIsFound() throws {
    do {
      let database = try filled(1000)
      try database.check()
    }
    var bytes = contents("test.sqlite")
    // The kind of a page, and how many rows it has.
    bytes.replaceSubrange(10 * 4096..<10 * 4096 + 8, with: Array(repeating: 0xff, count: 8))
    _ = files.write("test.sqlite", bytes)
    let database = try open()
    #expect(code { try database.check() } == .corrupt)
    #expect(code { try database.prepare("SELECT name FROM person").run() } == .corrupt)
  }

  @Test func somebodyElsesLockIsNotWaitedForForEver() throws {
    let (first, second) = (try filled(1), try open())
    try first.transaction { () throws(SQLiteError) in
      #expect(code { try second.transaction { () throws(SQLiteError) in } } == .busy)
    }
    try second.transaction { () throws(SQLiteError) in }
  }

  /// SQLite itself waits for no lock while it gives a file its form.
  @Test(.timeLimit(.minutes(30))) func somebodyElsesLockOnANewFileIsWaitedFor() async throws {
    let path = files.write("test.sqlite", "")
    let other = try Database(path, .foreign(foreignKeys: false, statementTimeout: .seconds(300)), busyTimeout: .zero)
    let thread = BlockingThread(named: "database")
    defer { thread.close() }
    try other.execute("BEGIN IMMEDIATE")
    async let opening = thread.run {
      Result { () throws(SQLiteError) in
        _ = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      }
    }
    // Long enough for it to have met the lock.
    for _ in 0..<100 { #expect(code { _ = try open() } == .busy) }
    try other.execute("ROLLBACK")
    try await opening.get()
    #expect(contents("test.sqlite")[18...19] == [2, 2], "the file says that it is in WAL mode")
  }

  @Test func whatWasDeletedIsGone() throws {
    let database = try filled(500)
    _ = try database.truncateLog()
    #expect(contents("test.sqlite").containsText("person 77 "))
    try database.execute("DELETE FROM person")
    #expect(try database.truncateLog())
    for name in ["test.sqlite", "test.sqlite-wal"] { #expect(!contents(name).containsText("person 77 "), "\(name)") }
    #expect(contents("test.sqlite-wal").isEmpty)
  }

  @Test func aReaderKeepsTheLogAsItIs() throws {
    let database = try filled(10)
    let reader = try open()
    try reader.snapshot { () throws(SQLiteError) in
      _ = try reader.prepare("SELECT count(*) FROM person").run()
      try database.execute("DELETE FROM person")
      #expect(try database.truncateLog() == false)
      let seen: Int64? = try reader.prepare("SELECT count(*) FROM person").first { row throws(SQLiteError) in
        try row.value(0)
      }
      #expect(seen == 10, "everything is seen as of one moment")
    }
    #expect(try database.truncateLog())
  }

  @Test func theLogDoesNotGrowWithoutEnd() throws {
    let database = try filled(1)
    let insertion = try database.prepare("INSERT INTO person (name) VALUES (?)")
    for _ in 0..<1000 { try insertion.run(String(repeating: "x", count: 12_000)) }
    #expect(contents("test.sqlite-wal").count < 2 * Database.logSize)
  }
}

extension [UInt8] {
  fileprivate func containsText(_ text: String) -> Bool {
    String(decoding: self.map { $0 < 0x80 ? $0 : 0x2e }, as: UTF8.self).contains(text)
  }
}
