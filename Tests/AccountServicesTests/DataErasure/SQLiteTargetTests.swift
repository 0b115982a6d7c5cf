import AccountEvents
import AccountServices
import EventLoop
import Glibc
import SQLite
import TestSupport
import Testing

/// An application's own database, and statements that its operator wrote.
@Loop
@Suite struct SQLiteTargetTests {
  private let files = TemporaryDirectory()
  private var path: String { files.path + "/shop.sqlite" }
  private let order = ErasureOrder.sample

  private nonisolated static let countUsers = "SELECT count(*) FROM user WHERE apple_sub = $1 AND apple_team = $2"
  private nonisolated static let eraseBoth = [
    "DELETE FROM purchase WHERE user IN (SELECT id FROM user WHERE apple_sub = $1)",
    "DELETE FROM user WHERE apple_sub = $1 AND apple_team = $2;",
  ]

  /// Three people with two purchases each; the first one is whom the order speaks of.
  private func makeDatabase() throws {
    let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .zero)
    try database.execute(
      """
      CREATE TABLE user (id INTEGER PRIMARY KEY, apple_team TEXT NOT NULL, apple_sub TEXT NOT NULL, name TEXT);
      CREATE TABLE purchase (user INTEGER NOT NULL REFERENCES user, item TEXT NOT NULL)
      """)
    let user = try database.prepare("INSERT INTO user (id, apple_team, apple_sub, name) VALUES (?, ?, ?, ?)")
    let purchase = try database.prepare("INSERT INTO purchase (user, item) VALUES (?, ?)")
    for (id, subject) in [(1, order.account.subject.text), (2, "someone-else"), (3, "' OR 1=1 --")] as [(Int64, String)]
    {
      try user.run(id, order.account.team.text, subject, "name-of-\(id)-which-is-long-enough-to-be-found")
      for item in ["book", "lamp"] { try purchase.run(id, item) }
    }
  }

  private func target(
    count: String = countUsers, erase: [String] = eraseBoth, find: String = countUsers, foreignKeys: Bool = true,
    statementTimeout: Duration = .seconds(300)
  ) -> SQLiteTarget {
    SQLiteTarget(
      path: path, statements: SQLStatements(count: count, erase: erase, find: find), foreignKeys: foreignKeys,
      statementTimeout: statementTimeout)
  }

  private func rows() throws -> [Int64] {
    let database = try Database(path, .readOnly, busyTimeout: .zero)
    var counts: [Int64] = []
    try database.prepare("SELECT count(*) FROM user UNION ALL SELECT count(*) FROM purchase").forEach {
      row throws(SQLiteError) in counts.append(try row.value(0))
    }
    return counts
  }

  private func bytesOfAllFiles() throws -> String {
    var text = ""
    for name in ["", "-wal", "-journal"] {
      let descriptor = unsafe open(path + name, O_RDONLY)
      guard descriptor >= 0 else { continue }
      var bytes = [UInt8](repeating: 0, count: 1 << 20)
      let count = unsafe read(descriptor, &bytes, bytes.count)
      close(descriptor)
      text += String(decoding: bytes.prefix(max(count, 0)).map { $0 < 0x80 ? $0 : 0x3f }, as: UTF8.self)
    }
    return text
  }

  /// SQLite quotes what a function was given.
  @Test(arguments: [
    "SELECT json_extract('{}', $1) FROM user",
    "SELECT count(*) FROM user WHERE json_extract('{}', '$[' || $1 || ']') = $2",
  ])
  func whatFailsWhileItRunsNamesNobody(_ count: String) async throws {
    try makeDatabase()
    let target = target(count: count)
    try await target.check()
    let error = await #expect(throws: ErasureFailure.self) { _ = try await target.count(order) }
    #expect(error?.code == .misconfigured && error?.detail == "other: SQL logic error")
  }

  @Test func leavesAloneWhatIsYoungerThanTheEvent() async throws {
    try makeDatabase()
    let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .zero)
    try database.execute("ALTER TABLE user ADD COLUMN created_at INTEGER")
    let statement = try database.prepare("UPDATE user SET created_at = ? WHERE id = 1")
    let rows = "FROM user WHERE apple_sub = $1 AND created_at <= $3"
    let target = target(
      count: "SELECT count(*) \(rows)",
      erase: ["DELETE FROM purchase WHERE user IN (SELECT id \(rows))", "DELETE \(rows)"],
      find: "SELECT count(*) \(rows) AND apple_team = $2")
    try statement.run(order.occurredAt.milliseconds + 1)
    #expect(try await target.count(order) == 0)
    #expect(try await target.erase(order).affected == 0)
    try statement.run(order.occurredAt.milliseconds)
    #expect(try await target.count(order) == 1)
    #expect(try await target.erase(order).affected == 3)
  }

  @Test func erasesOnePersonAndNobodyElse() async throws {
    try makeDatabase()
    let target = target()
    #expect(try await target.count(order) == 1)
    #expect(try bytesOfAllFiles().contains("name-of-1-"))
    let result = try await target.erase(order)
    #expect(result == ErasureResult(.erased, affected: 3, found: 0, detail: ""))
    #expect(try rows() == [2, 4])
    #expect(try !bytesOfAllFiles().contains("name-of-1-"), "what was erased is in no free page and in no log")
    #expect(try bytesOfAllFiles().contains("name-of-2-"))
    #expect(try await target.erase(order).affected == 0, "told again, it finds nothing and changes nothing")
  }

  @Test func erasesManyTogetherAndOnlyThoseNotWhoCannotBeErased() async throws {
    try makeDatabase()
    // Of 17 and 23 it is found out by the commit alone.
    try Database(path, .foreign(foreignKeys: true, statementTimeout: .seconds(300)), busyTimeout: .zero).execute(
      """
      CREATE TABLE invoice (user INTEGER NOT NULL REFERENCES user DEFERRABLE INITIALLY DEFERRED);
      WITH RECURSIVE number (id) AS (VALUES (11) UNION ALL SELECT id + 1 FROM number WHERE id < 30)
        INSERT INTO user SELECT id, 'A1B2C3D4E5', 'person-' || id, 'name-of-' || id || '-' FROM number;
      INSERT INTO purchase SELECT id, 'book' FROM user WHERE id % 2 = 0 AND id > 10;
      INSERT INTO invoice VALUES (17), (23)
      """)
    let (target, sample) = (target(), order)
    let results = try await withThrowingTaskGroup(of: (Int, Result<ErasureResult, ErasureFailure>).self) { group in
      for number in 11...30 {
        let subject = try #require(AppleSubject("person-\(number)"))
        let order = ErasureOrder(
          account: Account(team: sample.account.team, subject: subject), event: sample.event, reason: sample.reason,
          occurredAt: sample.occurredAt)
        group.addTask(executorPreference: Loop.executor) {
          do throws(ErasureFailure) { return (number, .success(try await target.erase(order))) } catch {
            return (number, .failure(error))
          }
        }
      }
      var results: [Int: Result<ErasureResult, ErasureFailure>] = [:]
      for try await (number, result) in group { results[number] = result }
      return results
    }
    for (number, result) in results {
      switch result {
      case .success(let erased):
        #expect(erased == ErasureResult(.erased, affected: number.isMultiple(of: 2) ? 2 : 1, found: 0, detail: ""))
      case .failure(let failure): #expect(failure.code == .refused && [17, 23].contains(number))
      }
    }
    #expect(results.count == 20)
    #expect(try rows() == [5, 6])
    let bytes = try bytesOfAllFiles()
    for number in 11...30 { #expect(bytes.contains("name-of-\(number)-") == [17, 23].contains(number)) }
  }

  @Test func takesASubjectForDataWhateverItSays() async throws {
    try makeDatabase()
    let subject = try #require(AppleSubject("'OR'1'='1'--"))
    let account = Account(team: order.account.team, subject: subject)
    let injection = ErasureOrder(
      account: account, event: order.event, reason: "account-delete", occurredAt: order.occurredAt)
    #expect(try await target().erase(injection).affected == 0)
    #expect(try rows() == [3, 6])
  }

  @Test func changesNothingWhereOneStatementFails() async throws {
    try makeDatabase()
    // Purchases still refer to the user.
    let target = target(erase: ["UPDATE user SET name = NULL WHERE apple_sub = $1", Self.eraseBoth[1]])
    let error = await #expect(throws: ErasureFailure.self) { try await target.erase(order) }
    #expect(error?.code == .refused)
    #expect(try rows() == [3, 6])
    #expect(try bytesOfAllFiles().contains("name-of-1-"))
  }

  @Test func isNotSatisfiedByWhatASecondLookStillFinds() async throws {
    try makeDatabase()
    let target = target(
      count: "SELECT count(*) FROM purchase WHERE user IN (SELECT id FROM user WHERE apple_sub = $1)",
      erase: [Self.eraseBoth[0]])
    let error = await #expect(throws: ErasureFailure.self) { try await target.erase(order) }
    #expect(error?.code == .remaining && error?.detail == "1 found after 2 were erased")
  }

  @Test(arguments: [
    (countUsers, ["DELETE FROM user"], countUsers), (countUsers, ["DELETE FROM user WHERE apple_sub = ?"], countUsers),
    (countUsers, ["DELETE FROM user WHERE apple_sub = $1; DELETE FROM user"], countUsers),
    (countUsers, ["DELETE FROM user WHERE apple_team = $2"], countUsers),
    (countUsers, ["DELETE FROM users WHERE apple_sub = $1"], countUsers), (countUsers, [""], countUsers),
    ("DELETE FROM user WHERE apple_sub = $1 RETURNING 1", eraseBoth, countUsers),
    (countUsers, eraseBoth, "SELECT count(*) FROM user"),
    (countUsers, eraseBoth, "SELECT name FROM user WHERE apple_sub = $3"),
  ])
  func refusesStatementsThatCannotBeMeant(_ count: String, _ erase: [String], _ find: String) async throws {
    try makeDatabase()
    let target = target(count: count, erase: erase, find: find)
    let checked = await #expect(throws: ErasureFailure.self) { try await target.check() }
    let erased = await #expect(throws: ErasureFailure.self) { try await target.erase(order) }
    #expect(checked?.code == .misconfigured && erased?.code == .misconfigured)
    #expect(try rows() == [3, 6])
  }

  @Test func findsADatabaseThatComesLater() async throws {
    let target = target()
    let error = await #expect(throws: ErasureFailure.self) { try await target.check() }
    #expect(error?.code == .misconfigured)
    #expect(unsafe access(path, F_OK) != 0, "it makes none of its own")
    try makeDatabase()
    #expect(try await target.erase(order).affected == 3)
  }

  @Test func erasesFromTheFileThatIsThereNow() async throws {
    try makeDatabase()
    let target = target()
    #expect(try await target.count(order) == 1)
    // Restored from a backup, say.
    #expect(unsafe rename(path, path + ".old") == 0)
    try makeDatabase()
    #expect(try await target.erase(order).affected == 3)
    #expect(try rows() == [2, 4])
  }

  /// Makes the application's database by statements of its own, as any program with SQLite's defaults does.
  private func make(_ statements: [String]) throws {
    try Database(path, .readWrite(pageSize: 4096), busyTimeout: .zero).execute("CREATE TABLE first (value INTEGER)")
    let database = try shop()
    for statement in statements { try database.prepare(unescaped: statement, parameters: []).run() }
  }

  private func shop() throws -> Database {
    try Database(path, .foreign(foreignKeys: false, statementTimeout: .seconds(300)), busyTimeout: .zero)
  }

  private func count(in table: String) throws -> Int64? {
    try shop().prepare(unescaped: "SELECT count(*) FROM \(table)", parameters: []).first { row throws(SQLiteError) in
      try row.value(0)
    }
  }

  private nonisolated static let countCustomers = "SELECT count(*) FROM customer WHERE sub = $1"
  private nonisolated static let eraseCustomer = ["DELETE FROM customer WHERE sub = $1"]

  @Test(arguments: [false, true])
  func followsACascadeOnlyWhereItIsToldTo(foreignKeys: Bool) async throws {
    try make([
      "CREATE TABLE customer (id INTEGER PRIMARY KEY, sub TEXT)",
      "CREATE TABLE invoice (customer INTEGER REFERENCES customer ON DELETE CASCADE)",
      "INSERT INTO customer VALUES (1, '\(order.account.subject.text)')", "INSERT INTO invoice VALUES (1)",
    ])
    let target = target(
      count: Self.countCustomers, erase: Self.eraseCustomer, find: Self.countCustomers, foreignKeys: foreignKeys)
    #expect(try await target.erase(order).affected == 1)
    #expect(try count(in: "invoice") == (foreignKeys ? 0 : 1))
  }

  /// The trigger of SQLite's manual for a full-text index of another table, and one with a text in double quotes.
  @Test(arguments: [
    [
      "CREATE VIRTUAL TABLE note USING fts5(name, content='customer', content_rowid='id')",
      """
      CREATE TRIGGER gone AFTER DELETE ON customer BEGIN
        INSERT INTO note(note, rowid, name) VALUES ('delete', old.id, old.name);
      END
      """, "INSERT INTO note(note) VALUES ('rebuild')",
    ],
    [
      "CREATE TABLE history (what TEXT, id INTEGER)",
      #"CREATE TRIGGER gone AFTER DELETE ON customer BEGIN INSERT INTO history VALUES ("deleted", old.id); END"#,
    ],
  ])
  func leavesTheSchemaItsMeaning(schema: [String]) async throws {
    try make(
      [
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, sub TEXT, name TEXT)",
        "INSERT INTO customer VALUES (1, '\(order.account.subject.text)', 'Ada')",
      ] + schema)
    let target = target(
      count: Self.countCustomers, erase: Self.eraseCustomer, find: Self.countCustomers, foreignKeys: false)
    #expect(try await target.erase(order).affected == 1)
    #expect(try count(in: "customer") == 0)
  }

  /// A view that a trigger writes to.
  private func makeView(_ trigger: StaticString) throws {
    try make([
      "CREATE TABLE person (id INTEGER PRIMARY KEY, subject TEXT, name TEXT)",
      "INSERT INTO person VALUES (1, '\(order.account.subject.text)', 'Ada')",
      "CREATE TABLE history (what TEXT)", "CREATE VIEW customer AS SELECT id, subject AS sub FROM person",
    ])
    try shop().execute(trigger)
  }

  @Test func aViewThatATriggerWritesToIsErasedFrom() async throws {
    try makeView(
      "CREATE TRIGGER gone INSTEAD OF DELETE ON customer BEGIN DELETE FROM person WHERE id = old.id; END")
    let target = target(
      count: Self.countCustomers, erase: Self.eraseCustomer, find: Self.countCustomers, foreignKeys: false)
    _ = try await target.erase(order)
    #expect(try count(in: "person") == 0)
  }

  @Test func aTriggerOfAViewMayHaveTextsInDoubleQuotes() async throws {
    try makeView(
      """
      CREATE TRIGGER gone INSTEAD OF DELETE ON customer BEGIN
        INSERT INTO history VALUES ("deleted"); DELETE FROM person WHERE id = old.id;
      END
      """)
    func target(_ column: String) -> SQLiteTarget {
      let (count, erase) = (
        #"SELECT count(*) FROM customer WHERE sub = $1"#, #"DELETE FROM customer WHERE "\#(column)" = $1"#
      )
      return self.target(count: count, erase: [erase], find: count, foreignKeys: false)
    }
    let error = await #expect(throws: ErasureFailure.self) { try await target("subject").erase(order) }
    #expect(
      error?.code == .misconfigured && error?.detail.contains("no such column: subject") == true, "\(error as Any)")
    _ = try await target("sub").erase(order)
    #expect(try count(in: "person") == 0)
  }

  /// While the eraser waits for the application's lock.
  @Test func aNameThatGoesWhileItIsWaitedForIsNoTextEither() async throws {
    try make([
      "CREATE TABLE customer (id INTEGER PRIMARY KEY, sub TEXT, name TEXT)",
      "INSERT INTO customer VALUES (1, '\(order.account.subject.text)', 'Ada')",
    ])
    let quoted = #"SELECT count(*) FROM "customer" WHERE "sub" = $1"#
    let target = target(
      count: quoted, erase: [#"DELETE FROM "customer" WHERE "sub" = $1"#], find: quoted, foreignKeys: false)
    let application = try shop()
    try application.execute("BEGIN IMMEDIATE; ALTER TABLE customer RENAME COLUMN sub TO subject")
    let order = order
    let erasing = Task(executorPreference: Loop.executor) { try await target.erase(order) }
    // It waits for up to five seconds; where this takes longer, as on a busy machine, it tries again.
    await Loop.nextTurn()
    try application.execute("COMMIT")
    var failure = await Self.failure { _ = try await erasing.value }
    while failure?.code == .unavailable { failure = await Self.failure { _ = try await target.erase(order) } }
    #expect(failure?.code == .misconfigured && failure?.detail.contains("no such column: sub") == true)
    #expect(try count(in: "customer") == 1)
  }

  /// SQLite would take the name for a text, find nobody, and the person would be called erased.
  @Test(arguments: [false, true])
  func aNameInDoubleQuotesThatIsGoneIsNoText(hasTrigger: Bool) async throws {
    let quoted = [#"SELECT count(*) FROM "customer" WHERE "sub" = $1"#, #"DELETE FROM "customer" WHERE "sub" = $1"#]
    let target = target(count: quoted[0], erase: [quoted[1]], find: quoted[0], foreignKeys: false)
    try make([
      "CREATE TABLE customer (id INTEGER PRIMARY KEY, sub TEXT, name TEXT)",
      "INSERT INTO customer VALUES (1, '\(order.account.subject.text)', 'Ada')",
    ])
    if hasTrigger {
      try shop().execute(
        """
        CREATE TABLE history (what TEXT);
        CREATE TRIGGER gone AFTER DELETE ON customer BEGIN INSERT INTO history VALUES ("deleted"); END
        """)
    }
    #expect(try await target.count(order) == 1)
    try shop().execute("ALTER TABLE customer RENAME COLUMN sub TO subject")
    for failing in [target.check, { _ = try await target.count(order) }, { _ = try await target.erase(order) }] {
      let error = await #expect(throws: ErasureFailure.self) { try await failing() }
      #expect(error?.code == .misconfigured && error?.detail.contains("no such column: sub") == true, "\(error as Any)")
    }
    #expect(try count(in: "customer") == 1)
    try shop().execute("ALTER TABLE customer RENAME COLUMN subject TO sub")
    #expect(try await target.erase(order).affected == 1)
    #expect(try !hasTrigger || count(in: "history") == 1)
  }

  private static func failure(_ body: @Loop () async throws -> Void) async -> ErasureFailure? {
    do {
      try await body()
      return nil
    } catch {
      return error as? ErasureFailure
    }
  }

  @Test func endsAStatementThatWouldNotEnd() async throws {
    try makeDatabase()
    let endless =
      "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i > $1"
    let counting = target(count: endless, statementTimeout: .milliseconds(20))
    let counted = await #expect(throws: ErasureFailure.self) { try await counting.count(order) }
    #expect(counted == ErasureFailure(.unavailable, "statementTimeout: the statement ran for too long"))
    let erasing = target(
      erase: [Self.eraseBoth[0], "DELETE FROM user WHERE apple_sub = $1 AND id < (\(endless))"],
      statementTimeout: .milliseconds(20))
    let erased = await #expect(throws: ErasureFailure.self) { try await erasing.erase(order) }
    #expect(erased?.code == .unavailable)
    #expect(try rows() == [3, 6], "the transaction was rolled back")
    #expect(try await target().erase(order).affected == 3, "the database is free again")
  }

  @Test func endsAStatementForWhomItWouldNotEndAndForNobodyElse() async throws {
    try makeDatabase()
    try shop().execute(
      """
      WITH RECURSIVE number (id) AS (VALUES (11) UNION ALL SELECT id + 1 FROM number WHERE id < 20)
        INSERT INTO user SELECT id, 'A1B2C3D4E5', 'person-' || id, 'a name' FROM number
      """)
    let endless =
      "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0"
    let target = target(
      count: "SELECT CASE $1 WHEN 'person-14' THEN (\(endless)) ELSE 1 END",
      erase: ["DELETE FROM user WHERE apple_sub = $1 AND CASE $1 WHEN 'person-14' THEN (\(endless)) ELSE 1 END"],
      statementTimeout: .milliseconds(100))
    let sample = order
    let failed = try await withThrowingTaskGroup(of: [Int].self) { group in
      for number in 11...20 {
        let subject = try #require(AppleSubject("person-\(number)"))
        let order = ErasureOrder(
          account: Account(team: sample.account.team, subject: subject), event: sample.event, reason: sample.reason,
          occurredAt: sample.occurredAt)
        group.addTask(executorPreference: Loop.executor) {
          var failures: [Int] = []
          do throws(ErasureFailure) { _ = try await target.count(order) } catch { failures.append(number) }
          do throws(ErasureFailure) { _ = try await target.erase(order) } catch { failures.append(number) }
          return failures
        }
      }
      var failed: [Int] = []
      for try await failures in group { failed += failures }
      return failed
    }
    #expect(failed == [14, 14])
    #expect(try rows() == [4, 6])
  }

  @Test func countsOnlyRowsThatAStatementChanged() async throws {
    try makeDatabase()
    let erase = [Self.eraseBoth[0], "SELECT name FROM user WHERE apple_sub = $1", Self.eraseBoth[1]]
    #expect(try await target(erase: erase).erase(order).affected == 3)
  }
}
