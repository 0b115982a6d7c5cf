import AccountEvents
import AccountServices
import Configuration
import EventLoop
import TestSupport
import Testing

/// An application's PostgreSQL, and statements that its operator wrote.
@Loop @Suite(PostgreSQLServer.isThere, .timeLimit(.minutes(30))) struct PostgreSQLTargetTests {
  private let order = ErasureOrder.sample

  private nonisolated static let countUsers = "SELECT count(*) FROM person WHERE apple_sub = $1 AND apple_team = $2"
  private nonisolated static let eraseBoth = [
    "DELETE FROM purchase WHERE person IN (SELECT id FROM person WHERE apple_sub = $1)",
    "DELETE FROM person WHERE apple_sub = $1 AND apple_team = $2",
  ]

  /// A target in a database of three people with two purchases each, and a look at how many of both there are.
  private func withTarget(
    count: String = countUsers, erase: [String] = eraseBoth, find: String = countUsers, with setting: String? = nil,
    _ body: @Loop (PostgreSQLTarget, _ rows: @Loop () async throws -> String) async throws -> Void
  ) async throws {
    let server = try await PostgreSQLServer.shared()
    let connection = try await server.makeDatabase()
    let name = try #require(connection.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7))
    _ = try await server.psql(
      """
      CREATE TABLE person (id int PRIMARY KEY, apple_team text NOT NULL, apple_sub text NOT NULL);
      CREATE TABLE purchase (person int NOT NULL REFERENCES person, item text NOT NULL);
      INSERT INTO person VALUES (1, '\(order.account.team)', '\(order.account.subject.text)'),
        (2, '\(order.account.team)', 'someone-else'), (3, '\(order.account.team)', 'another');
      INSERT INTO purchase SELECT id, item FROM person, (VALUES ('book'), ('lamp')) AS items (item);
      """, database: String(name))
    if let setting { _ = try await server.psql("ALTER DATABASE \(name) SET \(setting)", database: String(name)) }
    let target = PostgreSQLTarget(
      connection: Secret(connection), statements: SQLStatements(count: count, erase: erase, find: find),
      rowSecurity: false, logger: CapturedLog().logger())
    try await body(target) {
      try await server.psql(
        "SELECT (SELECT count(*) FROM person) || ' ' || (SELECT count(*) FROM purchase)", database: String(name))
    }
  }

  @Test func erasesOnePersonAndNobodyElse() async throws {
    try await withTarget { target, rows in
      try await target.check()
      let count = try await target.count(order)
      let result = try await target.erase(order)
      let left = try await rows()
      let again = try await target.erase(order)
      #expect(count == 1 && left == "2 4")
      #expect(result == ErasureResult(.erased, affected: 3, found: 0, detail: ""))
      #expect(again.affected == 0, "told again, it finds nothing and changes nothing")
    }
  }

  /// In a power cut, too, whatever the database is set to.
  @Test(arguments: ["on", "off", "remote_write"]) func whatIsErasedIsDurable(setting: String) async throws {
    let expected = setting == "off" ? "on" : setting
    let erase =
      "DELETE FROM purchase WHERE $1 <> '' AND 1 / (current_setting('synchronous_commit') = '\(expected)')::int = 1"
    try await withTarget(erase: [erase], with: "synchronous_commit = \(setting)") { target, _ in
      let failed = await failure { _ = try await target.erase(order) }
      #expect(failed?.code == .remaining, "the statement did not fail: \(failed as Any)")
    }
  }

  @Test func changesNothingWhereOneStatementFails() async throws {
    // Purchases still refer to the person.
    let erase = ["UPDATE person SET apple_team = 'x' WHERE apple_sub = $1", "DELETE FROM person WHERE apple_sub = $1"]
    try await withTarget(erase: erase) { target, rows in
      let error = await failure { _ = try await target.erase(order) }
      #expect(error?.code == .refused)
      #expect(error?.detail.contains(order.account.subject.text) == false)
      let left = try await rows()
      #expect(left == "3 6")
      let count = try await target.count(order)
      #expect(count == 1)
    }
  }

  @Test(arguments: [
    (countUsers, ["DELETE FROM person"], countUsers),
    (countUsers, ["DELETE FROM persons WHERE apple_sub = $1"], countUsers), (countUsers, [" -- $1"], countUsers),
    (countUsers, ["DELETE FROM person WHERE apple_sub = $1; DELETE FROM person"], countUsers),
    (countUsers, ["DELETE FROM person WHERE id::text = $4 OR apple_sub = $1"], countUsers),
    (countUsers, ["DELETE FROM person -- $1"], countUsers),
    (countUsers, ["DELETE FROM person WHERE apple_sub <> '$1'"], countUsers),
  ])
  func refusesStatementsThatCannotBeMeant(_ count: String, _ erase: [String], _ find: String) async throws {
    try await withTarget(count: count, erase: erase, find: find) { target, rows in
      let checked = await failure { try await target.check() }
      #expect(checked?.code == .misconfigured)
      let erased = await failure { _ = try await target.erase(order) }
      #expect(erased?.code == .misconfigured, "\(String(describing: erased))")
      let left = try await rows()
      #expect(left == "3 6")
    }
  }

  /// Each uses other parameters than the others, and PostgreSQL has to know the types of all.
  @Test func leavesAloneWhatIsYoungerThanTheEvent() async throws {
    let count = "SELECT count(*) FROM person WHERE apple_sub = $1 AND $3 > 0"
    let erase = [
      "DELETE FROM purchase WHERE person IN (SELECT id FROM person WHERE apple_sub = $1) AND item = 'lamp'",
      "UPDATE purchase SET item = 'none' WHERE person IN (SELECT id FROM person WHERE apple_sub = $1) "
        + "AND now() <= to_timestamp($3 / 1000.0)",
      "DELETE FROM purchase WHERE item = $2 AND person::text = $1",
    ]
    let find = """
      SELECT count(*) FROM purchase WHERE item = 'none'
        AND person IN (SELECT id FROM person WHERE apple_sub = $1 AND apple_team = $2 AND $3 >= 0)
      """
    try await withTarget(count: count, erase: erase, find: find) { target, rows in
      try await target.check()
      let count = try await target.count(order)
      let result = try await target.erase(order)
      let left = try await rows()
      #expect(count == 1 && result.affected == 1 && left == "3 5")
    }
  }

  @Test func plansStatementsThatCastWhatTheyAreGiven() async throws {
    let find = "SELECT count(*) FROM person WHERE apple_sub = $1::text AND $2::text::bytea IS NULL AND $3::bigint > 0"
    try await withTarget(count: "SELECT count(*) FROM purchase WHERE $1::text::uuid IS NULL", find: find) { target, _ in
      try await target.check()
    }
  }

  @Test func looksWithoutTheRightToChange() async throws {
    let count = "WITH gone AS (DELETE FROM purchase WHERE item <> $1 RETURNING 1) SELECT count(*) FROM gone"
    try await withTarget(count: count) { target, rows in
      let error = await failure { _ = try await target.count(order) }
      #expect(error?.code == .misconfigured)
      let left = try await rows()
      #expect(left == "3 6")
    }
  }

  /// What a policy keeps out of sight is not gone: all three statements would find nothing, and call that erased.
  @Test func refusesWhatRowLevelSecurityWouldHideUnlessItIsToldThatNothingIsHidden() async throws {
    let server = try await PostgreSQLServer.shared()
    let connection = try await server.makeDatabase()
    let name = try #require(connection.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7))
    let clerk = "clerk_\(name)"
    _ = try await server.psql(
      """
      CREATE TABLE person (apple_team text NOT NULL, apple_sub text NOT NULL);
      INSERT INTO person VALUES ('\(order.account.team)', '\(order.account.subject.text)');
      ALTER TABLE person ENABLE ROW LEVEL SECURITY;
      CREATE ROLE \(clerk) LOGIN;
      GRANT SELECT, DELETE ON person TO \(clerk);
      """, database: String(name))
    func target(rowSecurity: Bool) -> PostgreSQLTarget {
      PostgreSQLTarget(
        connection: Secret(connection.replacing("user=postgres", with: "user=\(clerk)")),
        statements: SQLStatements(
          count: Self.countUsers, erase: ["DELETE FROM person WHERE apple_sub = $1 AND apple_team = $2"],
          find: Self.countUsers), rowSecurity: rowSecurity, logger: CapturedLog().logger())
    }
    func left() async throws -> String { try await server.psql("SELECT count(*) FROM person", database: String(name)) }
    for attempt in 0..<3 {
      let error = await failure {
        switch attempt {
        case 0: try await target(rowSecurity: false).check()
        case 1: _ = try await target(rowSecurity: false).count(order)
        default: _ = try await target(rowSecurity: false).erase(order)
        }
      }
      #expect(error?.code == .misconfigured, "\(attempt): \(error as Any)")
      #expect(error?.detail.contains("row-security: true") == true)
    }
    // No policy shows the row: this is what the operator takes upon themselves.
    let blind = try await target(rowSecurity: true).erase(order)
    let before = try await left()
    #expect(blind.affected == 0 && before == "1")
    _ = try await server.psql("CREATE POLICY everybody ON person TO \(clerk) USING (true)", database: String(name))
    try await target(rowSecurity: true).check()
    let result = try await target(rowSecurity: true).erase(order)
    let after = try await left()
    #expect(result.affected == 1 && after == "0")
    _ = try await server.psql("DROP OWNED BY \(clerk); DROP ROLE \(clerk);", database: String(name))
  }

  @Test func saysThatTheDatabaseIsAway() async throws {
    let target = PostgreSQLTarget(
      connection: Secret("host=/nowhere dbname=shop connect_timeout=1 password=secret"),
      statements: SQLStatements(count: Self.countUsers, erase: Self.eraseBoth, find: Self.countUsers),
      rowSecurity: false, logger: CapturedLog().logger())
    let error = await failure { _ = try await target.count(order) }
    #expect(error?.code == .unavailable)
    #expect(error?.detail.contains("secret") == false)
  }

  private func failure(_ body: @Loop () async throws -> Void) async -> ErasureFailure? {
    do {
      try await body()
      return nil
    } catch {
      return error as? ErasureFailure
    }
  }
}
