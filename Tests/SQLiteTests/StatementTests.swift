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

  /// What there is room for, what there is not, and again what there is.
  @Test(arguments: [
    [0, 1, 64], [64, 64, 64], [65, 127, 1], [1, 191, 0], [192, 192, 0], [193, 1, 190], [0, 0, 192],
  ])
  func whatABoundValueIsHasNothingToDoWithTheOthersLengths(lengths: [Int]) throws {
    let select = try database().prepare("SELECT ?, ?, ?")
    for letter in ["a", "b"] {
      let texts = lengths.map { String(repeating: letter, count: $0) }
      let bytes = lengths.map { [UInt8](repeating: 7, count: $0) }
      let sameTexts = try select.first(texts[0], texts[1], texts[2]) { row throws(SQLiteError) in
        [try row.value(0, as: String.self), try row.value(1), try row.value(2)]
      }
      let mixed = try select.first(bytes[0], texts[1], bytes[2]) { row throws(SQLiteError) in
        (try row.value(0, as: [UInt8].self), try row.value(1, as: String.self), try row.value(2, as: [UInt8].self))
      }
      #expect(sameTexts == texts)
      #expect(mixed?.0 == bytes[0] && mixed?.1 == texts[1] && mixed?.2 == bytes[2])
    }
  }

  /// A run's rows, and its values until it ends, are its own: another run of another statement changes none of them.
  @Test func whatIsBoundStaysWhileItIsNeeded() throws {
    let database = try database()
    try database.execute(
      """
      CREATE TABLE word (number INTEGER PRIMARY KEY, text TEXT NOT NULL, upper TEXT) STRICT;
      CREATE TRIGGER uppercase AFTER INSERT ON word BEGIN
        UPDATE word SET upper = upper(new.text) WHERE number = new.number;
      END
      """)
    let insertion = try database.prepare(
      "INSERT INTO word (text) VALUES (?1), (?2), (?1 || ?2) RETURNING text, ?1 || '-' || ?2")
    let other = try database.prepare("SELECT count(*) FROM word WHERE text <> ?")
    for number in 0..<3 {
      let (one, two) = ("one \(number)", "two \(number)")
      var rows: [[String]] = []
      try insertion.forEach(one, two) { row throws(SQLiteError) in
        _ = try other.first("ONE OTHER") { row throws(SQLiteError) in try row.value(0, as: Int64.self) }
        rows.append([try row.value(0), try row.value(1)])
      }
      #expect(rows == [one, two, one + two].map { [$0, "\(one)-\(two)"] })
    }
    let upper: Int64? = try database.prepare("SELECT count(*) FROM word WHERE upper = upper(text)").first {
      row throws(SQLiteError) in try row.value(0)
    }
    #expect(upper == 9)
  }

  @Test func parametersForManyAreNullWhereNothingIsBound() throws {
    let database = try database()
    let select = try database.prepare("WITH pair (name, bytes) AS (VALUES (?, ?), (?, ?), (?, ?)) SELECT * FROM pair")
    /// What it returns where the first pairs are these.
    func rows(_ names: [String]) throws -> [String?] {
      var (rows, lengths): ([String?], [Int?]) = ([], [])
      try select.forEach { bindings throws(SQLiteError) in
        for name in names { try bindings.add(name, [UInt8](name.utf8)) }
      } row: { row throws(SQLiteError) in
        rows.append(try row.value(0))
        lengths.append(try row.value(1, as: [UInt8]?.self)?.count)
      }
      #expect(lengths == rows.map { $0?.utf8.count })
      return rows
    }
    #expect(try rows(["one", "two", "three"]) == ["one", "two", "three"])
    #expect(try rows(["four"]) == ["four", nil, nil], "what an earlier run was given is forgotten")
    #expect(try rows([]) == [nil, nil, nil])
    #expect(throws: SQLiteError.self, "more than there are parameters for") { try rows(["1", "2", "3", "4"]) }
    let failure = #expect(throws: SQLiteError.self) {
      try select.forEach { bindings throws(SQLiteError) in
        try bindings.add("one", [1])
        throw SQLiteError.unexpectedValue("enough")
      } row: { _ in
      }
    }
    #expect(failure == .unexpectedValue("enough"))
    #expect(try rows(["five"]) == ["five", nil, nil])
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
  @Test func whatHasHappenedWasNotInterrupted() throws {
    _ = try database()
    let foreign = try Database(
      files.path + "/test.sqlite", .foreign(foreignKeys: false, statementTimeout: .zero), busyTimeout: .zero)
    for _ in 1...20_000 { try foreign.transaction { () throws(SQLiteError) in } }
    try foreign.execute("CREATE TEMPORARY TABLE number (value INTEGER)")
    let insertion = try foreign.prepare("INSERT INTO number VALUES (?)")
    for number in 1...5000 { try insertion.run(Int64(number)) }
  }

  /// In either encoding, with parameters that are used more than once, in another order, and not at all.
  @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func aStatementOfSomebodyElsesGetsWhatItAsksFor(encoding: String) throws {
    let foreign = try Database(
      files.write("other.sqlite", ""), .foreign(foreignKeys: false, statementTimeout: .seconds(300)), busyTimeout: .zero
    )
    switch encoding {
    case "UTF-8": try foreign.execute("PRAGMA encoding = 'UTF-8'")
    case "UTF-16le": try foreign.execute("PRAGMA encoding = 'UTF-16le'")
    default: try foreign.execute("PRAGMA encoding = 'UTF-16be'")
    }
    try foreign.execute("CREATE TABLE person (id VARCHAR, mail TEXT COLLATE NOCASE)")
    let names = ["$1", "$2", "$3"]
    let insertion = try foreign.prepare(unescaped: "INSERT INTO person VALUES ($3, $1), ($1, $1);", parameters: names)
    let long = String(repeating: "ü", count: 500)
    for third in ["drei", long] { try insertion.run("Eins", "zwei", third) }
    let select = try foreign.prepare(
      unescaped: "SELECT id, $1 FROM person WHERE mail = $1 AND id <> $1 ORDER BY length(id), id DESC",
      parameters: names)
    var found: [String] = []
    try select.forEach("eins", "zwei", "drei") { row throws(SQLiteError) in
      found += [try row.value(0), try row.value(1)]
    }
    #expect(found == ["drei", "eins", "Eins", "eins", "Eins", "eins", long, "eins"])
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
