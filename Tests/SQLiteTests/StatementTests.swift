import SQLite
import TestSupport
import Testing

/// What is bound and what is read.
@Suite struct StatementTests {
  private let files = TemporaryDirectory()

  private func database() throws -> Database {
    try Database(files.path + "/test.sqlite", .readWrite(pageSize: 4096), busyTimeout: .zero)
  }

  @Test(arguments: [0, 1, -1, .max, .min] as [Int64])
  func integersComeBackAsTheyWere(value: Int64) throws {
    let back: Int64? = try database().prepare("SELECT ?").first(value) { row throws(SQLiteError) in try row.value(0) }
    #expect(back == value)
  }

  @Test(arguments: ["", "Ada", "a\0b", "ü€😀", "'; DROP TABLE number; --"])
  func textsComeBackAsTheyWere(value: String) throws {
    let back: String? = try database().prepare("SELECT ?").first(value) { row throws(SQLiteError) in try row.value(0) }
    #expect(back == value)
  }

  @Test(arguments: [[], [0], [0xff, 0, 0xfe]] as [[UInt8]])
  func bytesComeBackAsTheyWere(value: [UInt8]) throws {
    let back: [UInt8]? = try database().prepare("SELECT ?").first(value) { row throws(SQLiteError) in try row.value(0) }
    #expect(back == value)
  }

  @Test func largeValuesComeBackAsTheyWere() throws {
    let (text, bytes) = (String(repeating: "x", count: 1_000_000), [UInt8](repeating: 7, count: 1_000_000))
    let isSame = try database().prepare("SELECT ?, ?").first(text, bytes) { row throws(SQLiteError) in
      let (sameText, sameBytes): (String, [UInt8]) = (try row.value(0), try row.value(1))
      return sameText == text && sameBytes == bytes
    }
    #expect(isSame == true)
  }

  @Test func nothingIsNotEmpty() throws {
    let select = try database().prepare("SELECT ? IS NULL, ? IS NULL, ? IS NULL, ?")
    let none: String? = nil
    let found = try select.first(none, "", [UInt8](), Int64?.none) { row throws(SQLiteError) in
      let isNothing: Int64? = try row.value(3)
      return [try row.value(0, as: Int64.self), try row.value(1), try row.value(2), isNothing ?? -7]
    }
    #expect(found == [1, 0, 0, -7])
  }

  @Test func aColumnIsReadAsWhatItIs() throws {
    let database = try database()
    let select = try database.prepare("SELECT 1, 'one', x'01', NULL, 1.5, CAST(x'ff' AS TEXT)")
    /// The error of reading a column as `type`.
    func refusal<Value: SQLiteValue>(of column: Int, as type: Value.Type) -> SQLiteError.Code? {
      do throws(SQLiteError) {
        _ = try select.first { row throws(SQLiteError) in try row.value(column, as: type) }
        return nil
      } catch {
        return error.code
      }
    }
    #expect(
      [0, 1, 2, 3, 4, 5, 6, -1].map { refusal(of: $0, as: Int64.self) == nil } == [true]
        + .init(repeating: false, count: 7))
    #expect([0, 1, 2, 3, 4, 5, 6, -1].map { refusal(of: $0, as: String.self) == nil }.filter { $0 }.count == 1)
    #expect([0, 1, 2, 3, 4, 5, 6, .max].map { refusal(of: $0, as: [UInt8].self) == nil }.filter { $0 }.count == 1)
    #expect(refusal(of: 5, as: String.self) == .unexpectedValue, "what is not UTF-8 is no text")
    #expect(refusal(of: 3, as: String?.self) == nil && refusal(of: 2, as: String?.self) == .unexpectedValue)
  }

  @Test func aStatementIsUsedAgainAfterItFailed() throws {
    let database = try database()
    try database.execute("CREATE TABLE number (value INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT")
    let insertion = try database.prepare("INSERT INTO number (value, name) VALUES (?, ?)")
    try insertion.run(Int64(1), "one")
    let failure = #expect(throws: SQLiteError.self) { try insertion.run(Int64(1), "secret") }
    #expect(failure?.code == .constraint && failure?.description.contains("secret") == false)
    #expect(failure?.description == "constraint: UNIQUE constraint failed: number.value")
    #expect(throws: SQLiteError.self) { try insertion.run(Int64(2), String?.none) }
    #expect(throws: SQLiteError.self) { try insertion.run(Int64(2), [UInt8]()) }
    try insertion.run(Int64(2), "two")
    #expect(database.changes == 1)
    var names: [String] = []
    try database.prepare("SELECT name FROM number WHERE value > ? ORDER BY value").forEach(Int64(0)) {
      row throws(SQLiteError) in names.append(try row.value(0))
    }
    #expect(names == ["one", "two"])
  }

  @Test func readingEndsWithTheErrorOfWhoReads() throws {
    let select = try database().prepare("SELECT 1 UNION SELECT 2")
    var seen = 0
    let failure = #expect(throws: SQLiteError.self) {
      try select.forEach { row throws(SQLiteError) in
        seen += 1
        throw SQLiteError.unexpectedValue("enough")
      }
    }
    #expect(failure == .unexpectedValue("enough") && seen == 1)
  }

  @Test func whatReturnsARowIsCommittedToo() throws {
    let database = try database()
    try database.execute("CREATE TABLE number (value INTEGER PRIMARY KEY) STRICT")
    let insertion = try database.prepare("INSERT INTO number (value) VALUES (?), (?) RETURNING value")
    let first: Int64? = try insertion.first(Int64(5), Int64(6)) { row throws(SQLiteError) in try row.value(0) }
    let other = try Database(files.path + "/test.sqlite", .readOnly, busyTimeout: .zero)
    let count: Int64? = try other.prepare("SELECT count(*) FROM number").first { row throws(SQLiteError) in
      try row.value(0)
    }
    #expect(first == 5 && count == 2)
  }

  @Test func aWrongStatementIsAnError() throws {
    let failure = #expect(throws: SQLiteError.self) { try database().prepare("SELECT nonsense FROM nowhere") }
    #expect(failure?.code == .other)
    // What stands in double quotes is a name, and never a text where there is no such name.
    #expect(throws: SQLiteError.self) { try database().prepare(#"SELECT "nonsense""#) }
  }

  @Test func aStatementOfSomebodyElsesDatabaseHasALimit() throws {
    _ = try database()
    let foreign = try Database(
      files.path + "/test.sqlite", .foreign(foreignKeys: false, statementTimeout: .milliseconds(10)),
      busyTimeout: .zero)
    let endless = try foreign.prepare(
      "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    for _ in 1...2 {
      let failure = #expect(throws: SQLiteError.self) { try endless.run() }
      #expect(failure?.code == .statementTimeout)
    }
    try foreign.transaction { () throws(SQLiteError) in try foreign.execute("CREATE TABLE number (value INTEGER)") }
  }

  /// SQLite asks after each 10,000 instructions whether the time is over, and counts the runs of a statement together.
  @Test func aCommitThatHasHappenedWasNotInterrupted() throws {
    _ = try database()
    let foreign = try Database(
      files.path + "/test.sqlite", .foreign(foreignKeys: false, statementTimeout: .zero), busyTimeout: .zero)
    for _ in 1...20_000 { try foreign.transaction { () throws(SQLiteError) in } }
  }

  @Test(arguments: [false, true])
  func somebodyElsesDatabaseKeepsSQLitesDefaults(foreignKeys: Bool) throws {
    _ = try database()
    let foreign = try Database(
      files.path + "/test.sqlite", .foreign(foreignKeys: foreignKeys, statementTimeout: .seconds(300)),
      busyTimeout: .zero)
    let pragmas: [(StaticString, Int64)] = [
      ("PRAGMA foreign_keys", foreignKeys ? 1 : 0), ("PRAGMA trusted_schema", 1), ("PRAGMA synchronous", 2),
      ("PRAGMA secure_delete", 1),
    ]
    for (pragma, value) in pragmas {
      let found: Int64? = try foreign.prepare(pragma).first { row throws(SQLiteError) in try row.value(0) }
      #expect(found == value, "\(pragma)")
    }
    // A text in double quotes, as every default build of SQLite has it.
    let text: String? = try foreign.prepare(#"SELECT "deleted""#).first { row throws(SQLiteError) in try row.value(0) }
    #expect(text == "deleted")
    #expect(throws: SQLiteError.self) { try foreign.execute("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema") }
  }
}
