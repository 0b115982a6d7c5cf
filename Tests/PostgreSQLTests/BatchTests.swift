import EventLoop
import PostgreSQL
import TestSupport
import Testing

/// Many executions in one exchange.
@Loop @Suite(PostgreSQLServer.isThere) struct BatchTests {
  private static let schema: StaticString = "CREATE TABLE number (value bigint PRIMARY KEY, place bigserial)"
  private static let insertion: StaticString = "INSERT INTO number (value) VALUES ($1)"

  private func numbers(_ connection: Connection) async throws -> [Int64] {
    try await connection.query("SELECT value FROM number ORDER BY place", limit: .many) {
      row throws(PostgreSQLError) in try row.value(0)
    }
  }

  @Test func aThousandExecutionsAreAnsweredInTheirOrder() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      try await connection.run(script: Self.schema)
      var batch = Batch()
      for value in (0..<1000 as Range<Int64>).reversed() { batch.append(Self.insertion, value) }
      batch.append("DELETE FROM number WHERE value < $1", Int64(10))
      batch.append("SELECT value FROM number WHERE value < $1", Int64(30))
      let counts = try await connection.run(batch)
      #expect(counts == Array(repeating: 1, count: 1000) + [10, 20])
      let values = try await numbers(connection)
      #expect(values == (10..<1000).reversed())
    }
  }

  @Test func rowsComeWithTheirExecution() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      var batch = Batch()
      batch.append("SELECT generate_series(1, $1)", Int64(2))
      batch.append("SELECT 1 WHERE false")
      batch.append("SELECT generate_series(1, $1)", Int64(3))
      var rows: [[Int64]] = []
      let counts = try await connection.run(batch) { execution, row throws(PostgreSQLError) in
        rows.append([Int64(execution), try row.value(0)])
      }
      #expect(rows == [[0, 1], [0, 2], [2, 1], [2, 2], [2, 3]] && counts == [2, 0, 3])
    }
  }

  @Test func anArrayIsOneParameter() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      let found = try await connection.query(
        "SELECT * FROM unnest($1, $2, $3, $4, $5) WITH ORDINALITY", PostgreSQLArray([1, -2, Int64.max]),
        PostgreSQLArray(["", "ä{\"", "NULL"]), PostgreSQLArray([[], [0], [1, 0xff]] as [[UInt8]]),
        PostgreSQLArray([true, false, true]), PostgreSQLArray([nil, "b", nil] as [String?]), limit: .many
      ) { row throws(PostgreSQLError) in
        let left = "\(try row.value(0, as: Int64.self)) \(try row.value(1, as: String.self))"
        let right = "\(try row.value(2, as: [UInt8].self)) \(try row.value(3, as: Bool.self))"
        return "\(left) \(right) \(try row.value(4, as: String?.self) ?? "-") \(try row.value(5, as: Int64.self))"
      }
      #expect(found == ["1  [] true - 1", "-2 ä{\" [0] false b 2", "9223372036854775807 NULL [1, 255] true - 3"])
      let none = try await connection.execute("SELECT unnest($1)", PostgreSQLArray([] as [Int64]))
      #expect(none == 0)
    }
  }

  @Test func theFirstFailureEndsTheBatchAndSaysWhichItWas() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      try await connection.run(script: Self.schema)
      var batch = Batch()
      for value in [1, 2, 3, 2, 1] as [Int64] { batch.append(Self.insertion, value) }
      let twice = await failure { _ = try await connection.run(batch) }
      #expect(twice?.code == .uniqueViolation && twice?.execution == 3)
      var unknown = Batch()
      unknown.append(Self.insertion, Int64(1))
      unknown.append("SELECT nonsense")
      let nonsense = await failure { _ = try await connection.run(unknown) }
      #expect(nonsense?.code == .statement && nonsense?.execution == 1)
      let values = try await numbers(connection)
      #expect(values.isEmpty, "a batch is one transaction")
      let none = try await connection.run(Batch())
      #expect(none.isEmpty)
    }
    let inTransaction = await failure {
      try await pool.transaction(.readCommitted) { connection in
        try await connection.execute(Self.insertion, Int64(7))
        var batch = Batch()
        for value in [8, 7] as [Int64] { batch.append(Self.insertion, value) }
        _ = try await connection.run(batch)
      }
    }
    #expect(inTransaction?.code == .uniqueViolation && inTransaction?.execution == 1)
    let values = try await pool.withConnection { try await numbers($0) }
    #expect(values.isEmpty)
  }

  @Test func whatFailsInTheCommitIsNoneOfTheExecutions() async throws {
    let pool = try await TestPool.fresh().pool
    try await pool.withConnection { connection in
      try await connection.run(script: "CREATE TABLE number (value bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)")
      var batch = Batch()
      for value in [1, 1] as [Int64] { batch.append(Self.insertion, value) }
      let deferred = await failure { _ = try await connection.run(batch) }
      #expect(deferred?.code == .uniqueViolation && deferred?.execution == nil && deferred?.isUncertain == false)
      let count = try await connection.execute("SELECT FROM number")
      #expect(count == 0)
    }
  }

  @Test func aBatchThatFillsEverySocketOnBothWaysGetsThrough() async throws {
    let pool = try await TestPool.fresh().pool
    let text = String(repeating: "x", count: 20_000)
    try await pool.withConnection { connection in
      var batch = Batch()
      for _ in 0..<1000 { batch.append("SELECT $1", text) }
      let counts = try await connection.run(batch)
      #expect(counts == Array(repeating: 1, count: 1000))
    }
  }
}
