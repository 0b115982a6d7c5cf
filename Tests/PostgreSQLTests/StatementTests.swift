import EventLoop
import PostgreSQL
import TestSupport
import Testing

/// What is bound and what is read.
@Loop @Suite(PostgreSQLServer.isThere) struct StatementTests {
  @Test func valuesComeBackAsTheyWere() async throws {
    let large = String(repeating: "x", count: 1_000_000)
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      for value in [0, 1, -1, 256, .max, .min] as [Int64] { try await expectSame(value, connection) }
      for value in ["", "Ada", "ü€😀", "'; DROP TABLE number; --", "$1", "\\", "\"", large] {
        try await expectSame(value, connection)
      }
      for value in [[], [0], [0xff, 0, 0xfe], Array(large.utf8)] as [[UInt8]] {
        try await expectSame(value, connection)
      }
      for value in [true, false] { try await expectSame(value, connection) }
    }
  }

  private func expectSame<Value: PostgreSQLValue & Equatable>(_ value: Value, _ connection: Connection) async throws {
    let back: Value? = try await connection.first("SELECT $1", value) { row throws(PostgreSQLError) in try row.value(0)
    }
    #expect(back == value)
  }

  @Test func nothingIsNotEmpty() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      let found = try await connection.first(
        "SELECT $1 IS NULL, $2 IS NULL, $3 IS NULL, $4 IS NULL, $5, $6", String?.none, "", [UInt8](), Bool?.none,
        Int64?.none, Int64?(5)
      ) { row throws(PostgreSQLError) in
        let (nothing, something): (Int64?, Int64?) = (try row.value(4), try row.value(5))
        let areNull: [Bool] = [try row.value(0), try row.value(1), try row.value(2), try row.value(3)]
        return areNull == [true, false, false, true] && nothing == nil && something == 5
      }
      #expect(found == true)
    }
  }

  @Test func aColumnIsReadAsWhatItIs() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      @Loop func refusals<Value: PostgreSQLValue>(as type: Value.Type) async throws -> [PostgreSQLError.Code?] {
        let found = try await connection.first(
          "SELECT 1::int8, 'one'::text, '\\x01'::bytea, true, NULL::int8, 1.5::float8, -2::int4, -3::int2, 'v'::varchar"
        ) { row throws(PostgreSQLError) in
          (-1...9).map { column -> PostgreSQLError.Code? in
            do throws(PostgreSQLError) {
              _ = try row.value(column, as: type)
              return nil
            } catch {
              return error.code
            }
          }
        }
        return try #require(found)
      }
      @Loop func readable<Value: PostgreSQLValue>(as type: Value.Type) async throws -> [Int] {
        let refusals = try await refusals(as: type)
        #expect(refusals.allSatisfy { $0 == nil || $0 == .unexpectedValue })
        return refusals.indices.filter { refusals[$0] == nil }.map { $0 - 1 }
      }
      let integers = try await (readable(as: Int64.self), readable(as: Int64?.self))
      #expect(integers.0 == [0, 6, 7] && integers.1 == [0, 4, 6, 7])
      let others = try await [readable(as: String.self), readable(as: [UInt8].self), readable(as: Bool.self)]
      #expect(others == [[1, 8], [2], [3]])
      let small = try await connection.first("SELECT -2::int4, -3::int2, 40000::int4") { row throws(PostgreSQLError) in
        [try row.value(0), try row.value(1), try row.value(2)] as [Int64]
      }
      #expect(small == [-2, -3, 40_000])
    }
  }

  @Test func whatLooksLikeSQLIsOnlyData() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      try await connection.run(script: "CREATE TABLE person (name text PRIMARY KEY)")
      let hostile = "'); DROP TABLE person; --"
      let inserted = try await connection.execute("INSERT INTO person (name) VALUES ($1)", hostile)
      let deleted = try await connection.execute("DELETE FROM person WHERE name = $1", "' OR true --")
      #expect(inserted == 1 && deleted == 0)
      let names: [String] = try await connection.query("SELECT name FROM person", limit: .many) {
        row throws(PostgreSQLError) in try row.value(0)
      }
      #expect(names == [hostile])
    }
  }

  @Test func whatTheServerRefusesHasACodeAndNoValues() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      try await connection.run(
        script: """
          CREATE TABLE number (value bigint PRIMARY KEY, name text NOT NULL CHECK (name <> 'secret5'));
          CREATE TABLE part (of bigint NOT NULL REFERENCES number);
          INSERT INTO number VALUES (77001, 'one');
          """)
      @Loop func refused(_ body: @Loop () async throws -> Void) async -> PostgreSQLError? {
        let error = await failure(of: body)
        #expect(error?.description.contains("secret") == false && error?.description.contains("77001") == false)
        #expect(error?.isUncertain == false && error?.isRetriable == false)
        return error
      }
      let insertion: StaticString = "INSERT INTO number (value, name) VALUES ($1, $2)"
      let unique = await refused { try await connection.execute(insertion, Int64(77_001), "secret1") }
      #expect(unique?.code == .uniqueViolation && unique?.sqlState == "23505")
      #expect(unique?.description == "uniqueViolation (23505): constraint number_pkey, table number")
      let null = await refused { try await connection.execute(insertion, Int64(2), String?.none) }
      #expect(null?.description == "constraint (23502): table number, column name")
      let check = await refused { try await connection.execute(insertion, Int64(2), "secret5") }
      #expect(check?.code == .constraint && check?.sqlState == "23514")
      let reference = await refused { try await connection.execute("INSERT INTO part VALUES ($1)", Int64(3)) }
      #expect(reference?.code == .constraint && reference?.sqlState == "23503")
      let data = await refused { try await connection.execute("SELECT $1::uuid", "secret") }
      #expect(data?.description == "data (22P02): a value that its type does not have")
      #expect(data?.debugDescription.contains("secret") == true, "what the server said is there for whoever debugs")
      let nul = await refused { try await connection.execute("SELECT $1", "sec\0ret") }
      #expect(nul?.code == .data)
      let table = await refused { try await connection.execute("SELECT secret FROM nowhere") }
      #expect(table?.code == .statement && table?.sqlState == "42P01")
      let syntax = await refused { try await connection.execute("SELEKT secret") }
      #expect(syntax?.code == .statement && syntax?.sqlState == "42601")
      let raised = await refused {
        try await connection.run(script: "DO $$ BEGIN RAISE EXCEPTION 'secret'; END $$")
      }
      #expect(raised?.code == .raised)
      let copy = await failure { try await connection.run(script: "COPY number TO STDOUT") }
      #expect(copy?.code == .statement && copy?.detail == "COPY is not supported")
    }
    // The connection that was given up is replaced.
    let rows = try await pool.withConnection { try await $0.execute("SELECT name FROM number") }
    #expect(rows == 1)
  }

  @Test func aStatementIsUsedAgainAfterItFailed() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      let select: StaticString = "SELECT 10 / $1"
      for divisor in [5, 0, 2] as [Int64] {
        do {
          let quotient: Int64? = try await connection.first(select, divisor) { row throws(PostgreSQLError) in
            try row.value(0)
          }
          #expect(quotient == 10 / divisor)
        } catch let error as PostgreSQLError {
          #expect(divisor == 0 && error.sqlState == "22012")
        }
      }
      let count = try await connection.execute("SELECT FROM pg_prepared_statements WHERE statement LIKE 'SELECT 10%'")
      #expect(count == 1, "it is prepared once")
    }
  }

  @Test func aStatementSurvivesAChangeOfItsTable() async throws {
    let pool = try await TestPool.fresh(size: 1).pool
    let select: StaticString = "SELECT * FROM number"
    try await pool.withConnection { connection in
      try await connection.run(script: "CREATE TABLE number (value bigint); INSERT INTO number VALUES (1)")
      try await connection.execute(select)
      try await connection.run(script: "ALTER TABLE number ADD name text")
      let stale = await failure { try await connection.execute(select) }
      #expect(stale?.code == .stalePlan && stale?.isRetriable == true)
      let rows = try await connection.execute(select)
      #expect(rows == 1)
      try await connection.run(script: "DEALLOCATE ALL")
      let forgotten = await failure { try await connection.execute(select) }
      #expect(forgotten?.code == .stalePlan)
      try await connection.execute(select)
      try await connection.run(script: "ALTER TABLE number ADD more text")
    }
    let rows = try await pool.transaction(.serializable) { try await $0.execute(select) }
    #expect(rows == 1)
  }

  @Test func aResultThatIsTooLargeIsRefused() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      @Loop func count(_ limit: ResultLimit) async throws -> Int {
        var count = 0
        try await connection.forEach("SELECT repeat('x', 100) FROM generate_series(1, 5000)", limit: limit) { _ in
          count += 1
        }
        return count
      }
      let all = try await count(ResultLimit(rows: 5000, bytes: 500_000))
      #expect(all == 5000)
      for limit in [ResultLimit(rows: 4999, bytes: .max), ResultLimit(rows: .max, bytes: 499_999)] {
        let error = await failure { _ = try await count(limit) }
        #expect(error?.code == .tooLarge && error?.isRetriable == false)
      }
      let next = try await connection.execute("SELECT")
      #expect(next == 1, "the connection is still good")
    }
  }

  @Test func readingEndsWithTheErrorOfWhoReads() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      var seen = 0
      let error = await failure {
        try await connection.forEach("SELECT generate_series(1, 100)", limit: .many) { _ throws(PostgreSQLError) in
          seen += 1
          throw .unexpectedValue("enough")
        }
      }
      #expect(error == .unexpectedValue("enough") && seen == 1)
      let next = try await connection.execute("SELECT")
      #expect(next == 1)
    }
  }

  @Test func noticesReachTheLog() async throws {
    let test = try await TestPool.fresh()
    try await test.pool.withConnection { connection in
      try await connection.run(script: "DO $$ BEGIN RAISE WARNING 'careful'; END $$")
    }
    #expect(test.notices.texts == ["WARNING 01000 careful"])
  }
}
