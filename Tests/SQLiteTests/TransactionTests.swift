import CSQLite
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import SQLite

/// All of it or nothing, whatever happens.
@Loop @Suite(.serialized) struct TransactionTests {
  private let files = TemporaryDirectory()

  private func open() throws -> Database {
    let database = try Database(files.path + "/test.sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.execute("CREATE TABLE IF NOT EXISTS number (value INTEGER PRIMARY KEY, half TEXT NOT NULL) STRICT")
    return database
  }

  private func insert(_ number: Int64, _ text: String = "", into database: Database) throws(SQLiteError) {
    try database.prepare("INSERT INTO number (value, half) VALUES (?, ?)").run(number, text)
  }

  private func numbers(in database: Database) throws -> Set<Int64> {
    var numbers: Set<Int64> = []
    try database.prepare("SELECT value FROM number").forEach { row throws(SQLiteError) in
      numbers.insert(try row.value(0))
    }
    return numbers
  }

  @Test func whatFailsHasNotHappened() throws {
    let database = try open()
    let result = try database.transaction { () throws(SQLiteError) in
      try insert(1, into: database)
      return "done"
    }
    #expect(result == "done")
    let failure = #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in
        try insert(2, into: database)
        try insert(1, into: database)
      }
    }
    #expect(failure?.code == .constraint && failure?.rollbackFailure == nil)
    #expect(try numbers(in: database) == [1])
    #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in
        try database.transaction { () throws(SQLiteError) in }
      }
    }
    try database.transaction { () throws(SQLiteError) in try insert(3, into: database) }
    #expect(try numbers(in: database) == [1, 3])
  }

  /// SQLite keeps the system's word of a statement that failed, and none of a commit's.
  @Test func aCommitThatFailsIsNotCalledByWhatHadFailedBefore() throws {
    try #require(FailingWrites.areInUse)
    let database = try open()
    try database.execute("PRAGMA cache_size = 2")
    let full = #expect(throws: SQLiteError.self) {
      try FailingWrites.$failure.withValue(EDQUOT) {
        try database.transaction { () throws(SQLiteError) in
          // More than the cache holds: the log is written before the commit.
          for number in 1...300 { try insert(Int64(number), String(repeating: "a", count: 1000), into: database) }
        }
      }
    }
    #expect(full?.code == .full)
    let failure = #expect(throws: SQLiteError.self) {
      try FailingWrites.$failure.withValue(EIO) {
        try database.transaction { () throws(SQLiteError) in try insert(1, into: database) }
      }
    }
    #expect(failure?.code == .ioError, "what has come of it nobody knows; a full disk would mean: nothing")
    try database.transaction { () throws(SQLiteError) in try insert(2, into: database) }
    #expect(try numbers(in: database) == [2])
  }

  @Test func aPartThatFailsLeavesTheRestOfTheTransaction() throws {
    let database = try open()
    try database.transaction { () throws(SQLiteError) in
      try insert(1, into: database)
      #expect(database.isInTransaction)
      do throws(SQLiteError) {
        try database.savepoint(translating: { $0 }) { () throws(SQLiteError) in
          try insert(2, into: database)
          try insert(1, into: database)
        }
      } catch {
        #expect(error.code == .constraint && error.rollbackFailure == nil)
      }
      #expect(database.isInTransaction)
      try database.savepoint(translating: { $0 }) { () throws(SQLiteError) in try insert(3, into: database) }
    }
    #expect(!database.isInTransaction)
    #expect(try numbers(in: database) == [1, 3])
  }

  @Test func aCommitThatFailsIsRolledBack() throws {
    let database = try open()
    try database.execute(
      """
      CREATE TABLE child (parent INTEGER NOT NULL REFERENCES number DEFERRABLE INITIALLY DEFERRED) STRICT
      """)
    let failure = #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in
        try insert(1, into: database)
        try database.execute("INSERT INTO child (parent) VALUES (77)")
      }
    }
    #expect(failure?.code == .constraint)
    #expect(try numbers(in: database) == [])
    try database.transaction { () throws(SQLiteError) in try insert(2, into: database) }
  }

  @Test func aRollbackThatFailsIsToldBesideItsCause() throws {
    let database = try open()
    // SQLite asks before it does anything; here it may not roll back.
    unsafe sqlite3_set_authorizer(
      database.handle,
      { _, action, word, _, _, _ in
        guard action == SQLITE_TRANSACTION, let word = unsafe word else { return SQLITE_OK }
        return unsafe String(cString: word) == "ROLLBACK" ? SQLITE_DENY : SQLITE_OK
      }, nil)
    let failure = #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in throw SQLiteError.unexpectedValue("the cause") }
    }
    #expect(failure?.code == .unexpectedValue && failure?.detail == "the cause")
    #expect(failure?.rollbackFailure == "other: not authorized")
    #expect(failure?.description.contains("could not be rolled back: other: not authorized") == true)
  }

  @Test func aFullDatabaseStaysAsItWas() throws {
    let database = try open()
    try insert(1, into: database)
    try database.execute("PRAGMA max_page_count = 20")
    let failure = #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in
        for number in 2...100 { try insert(Int64(number), String(repeating: "x", count: 3000), into: database) }
      }
    }
    #expect(failure?.code == .full && failure?.rollbackFailure == nil)
    #expect(try numbers(in: database) == [1])
    try database.check()
    try database.execute("PRAGMA max_page_count = 1000000")
    try insert(2, String(repeating: "x", count: 3000), into: database)
  }

  /// The program says what was committed; whatever it said before it was killed is there, and nothing by halves.
  @Test(.timeLimit(.minutes(30)))
  func whatWasCommittedSurvivesTheProcess() async throws {
    var random = SeededRandom()
    var promised: Set<Int64> = []
    for round in 0..<10 {
      let words = ["database", files.path + "/test.sqlite", "\(round * 1_000_000 + 1)"]
      try await RunningProgram.run("durable-writer", words) { writer in
        _ = try await writer.outputLine(with: "inserted \(round * 1_000_000 + Int.random(in: 1...300, using: &random))")
        try await writer.killAndRead()
        #expect(writer.errors == "")
        for line in writer.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
          promised.insert(try #require(Int64(line.dropFirst("inserted ".count))))
        }
      }
    }
    let database = try open()
    try database.check()
    let there = try numbers(in: database)
    #expect(promised.count >= 10 && promised.isSubset(of: there), "seed \(random.seed)")
    #expect(there == Set(there.map { -$0 }), "seed \(random.seed): there are halves")
  }
}

/// Has databases fail to write, for one task.
private enum FailingWrites {
  /// The system's word for it; nil where writes succeed.
  @TaskLocal static var failure: CInt?

  /// Tells SQLite of it. False where SQLite writes by other calls of the system than Debian's does.
  static let areInUse: Bool = {
    let write: @convention(c) (CInt, UnsafeRawPointer?, Int, off_t) -> Int = { file, bytes, count, offset in
      guard let failure else { return unsafe pwrite(file, bytes, count, offset) }
      errno = failure
      return -1
    }
    guard let system = unsafe sqlite3_vfs_find(nil) else { return false }
    return unsafe system.pointee.xSetSystemCall(
      system, "pwrite64", unsafeBitCast(write, to: sqlite3_syscall_ptr.self)) == SQLITE_OK
  }()
}
