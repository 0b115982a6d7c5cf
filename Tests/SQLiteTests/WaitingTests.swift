import EventLoop
import Glibc
import SQLite
import TestSupport
import Testing

/// What a thread does that must not wait.
@Suite(.timeLimit(.minutes(30))) struct WaitingTests {
  private let files = TemporaryDirectory()
  private var path: String { files.path + "/test.sqlite" }

  init() throws {
    let database = try open()
    try database.execute("CREATE TABLE person (name TEXT NOT NULL) STRICT")
    let insertion = try database.prepare("INSERT INTO person (name) VALUES (?)")
    try database.transaction { () throws(SQLiteError) in
      for number in 0..<10_000 { try insertion.run("person \(number) \(String(repeating: "x", count: 200))") }
    }
  }

  private func open(_ access: Database.Access = .readWrite(pageSize: 4096)) throws(SQLiteError) -> Database {
    try Database(path, access, busyTimeout: .seconds(3600))
  }

  private func count(by statement: Statement) -> Result<Int64?, SQLiteError> {
    Result { () throws(SQLiteError) in try statement.first { row throws(SQLiteError) in try row.value(0) } }
  }

  /// Reads without waiting what was just read. The kernel may give up what it has in its memory at any time, even between
  /// the two reads: then both are tried again. Nil where it never has it.
  private func countAgain(in database: Database, by statement: Statement) throws -> Int64? {
    for _ in 0..<100 {
      let count = try count(by: statement).get()
      if case .success(count)? = database.withoutWaiting({ self.count(by: statement) }) { return count }
    }
    return nil
  }

  @Test(PageCache.isTold) func whatIsInMemoryIsReadWithoutWaiting() throws {
    let database = try open()
    let statement = try database.prepare("SELECT count(*) FROM person")
    #expect(try countAgain(in: database, by: statement) == 10_000)
  }

  @Test(PageCache.isTold) func whatIsOnTheDiskAloneIsReadWithWaitingOnly() throws {
    let file = unsafe Glibc.open(path, O_RDWR | O_CLOEXEC)
    // Not before the database is closed: that would take its locks away.
    defer { close(file) }
    do {
      // Without a log, in which the kernel might have the pages.
      let database = try open(.unchanging)
      let statement = try database.prepare("SELECT count(*) FROM person")
      try #require(fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0)
      let result = try #require(database.withoutWaiting { count(by: statement) })
      #expect(throws: SQLiteError.self) { try result.get() }
      #expect(try countAgain(in: database, by: statement) == 10_000)
    }
  }

  @Test func whatTakesLongIsNotReadToItsEnd() throws {
    let database = try open()
    let statement = try database.prepare(
      "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100000) SELECT max(n) FROM number"
    )
    let result = try #require(database.withoutWaiting { count(by: statement) })
    #expect(throws: SQLiteError.self) { try result.get() }
    #expect(try count(by: statement).get() == 100_000)
    // What is short is read however often it was before.
    let short = try database.prepare("SELECT 1")
    for _ in 0..<2000 { #expect(try database.withoutWaiting { count(by: short) }?.get() == 1) }
  }

  @Test func nobodysLockIsWaitedFor() throws {
    let (database, other) = (try open(), try open())
    let result = try other.transaction { () throws(SQLiteError) in
      database.withoutWaiting {
        Result { () throws(SQLiteError) in
          try database.transaction { () throws(SQLiteError) in try database.execute("DELETE FROM person") }
        }
      }
    }
    let error = #expect(throws: SQLiteError.self) { try result?.get() }
    #expect(error?.code == .busy)
    try database.transaction { () throws(SQLiteError) in try database.execute("DELETE FROM person") }
  }
}
