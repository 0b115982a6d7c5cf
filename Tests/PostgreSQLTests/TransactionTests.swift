import EventLoop
import PostgreSQL
import TestSupport
import Testing

/// What is committed, what is not, and what nobody knows.
@Loop @Suite(PostgreSQLServer.isThere) struct TransactionTests {
  private struct Enough: Error {}

  @Test func allOfItHappensOrNothing() async throws {
    let pool = try await NumberTable.pool()
    let value = try await pool.transaction(.serializable) { connection in
      try await connection.execute(NumberTable.insertion, Int64(1))
      try await connection.execute(NumberTable.insertion, Int64(2))
      return 7
    }
    #expect(value == 7)
    await #expect(throws: Enough.self) {
      try await pool.transaction(.serializable) { connection in
        try await connection.execute(NumberTable.insertion, Int64(3))
        throw Enough()
      }
    }
    try await pool.transaction(.readCommitted) { _ in }
    let values = try await NumberTable.values(pool)
    #expect(values == [1, 2])
  }

  @Test(arguments: PostgreSQLConfiguration.Isolation.allCases)
  func itIsIsolatedAsWasAsked(isolation: PostgreSQLConfiguration.Isolation) async throws {
    let pool = try await NumberTable.pool()
    let select: StaticString = "SELECT current_setting('transaction_isolation')"
    let inside: String? = try await pool.transaction(isolation) { connection in
      try await connection.first(select) { row throws(PostgreSQLError) in try row.value(0) }
    }
    let outside: String? = try await pool.withConnection { connection in
      try await connection.first(select) { row throws(PostgreSQLError) in try row.value(0) }
    }
    #expect(inside == isolation.rawValue && outside == "read committed")
  }

  @Test func whoDoesNotFitRunsAgain() async throws {
    let pool = try await NumberTable.pool()
    var attempts = 0
    try await pool.transaction(.serializable) { connection in
      attempts += 1
      let sum = try await connection.execute("SELECT value FROM number")
      if attempts == 1 {
        // Another one that reads the same and writes what would have been read.
        try await pool.transaction(.serializable) { other in
          let sum = try await other.execute("SELECT value FROM number")
          try await other.execute(NumberTable.insertion, Int64(sum))
        }
      }
      try await connection.execute(NumberTable.insertion, Int64(10 + sum))
    }
    let values = try await NumberTable.values(pool)
    #expect(attempts == 2 && values == [0, 11])
  }

  @Test func whoeverWaitsInACircleRunsAgain() async throws {
    let pool = try await NumberTable.pool()
    try await pool.withConnection { try await $0.run(script: "INSERT INTO number VALUES (1), (2)") }
    var attempts = 0
    let (bothHold, isOver) = ([Signal(), Signal()], Signal())
    let hold: @Loop (Int) async throws -> Void = { own in
      try await pool.transaction(.readCommitted) { connection in
        attempts += 1
        try await connection.run(script: "SET deadlock_timeout = '10ms'")
        let lock: StaticString = "SELECT FROM number WHERE value = $1 FOR UPDATE"
        // Whoever was sent away might be back before the other one has woken up.
        if attempts > 2 { await isOver.wait() }
        try await connection.execute(lock, Int64(1 + own))
        if attempts <= 2 {
          bothHold[own].fire()
          await bothHold[1 - own].wait()
        }
        try await connection.execute(lock, Int64(2 - own))
        isOver.fire()
      }
    }
    let both = [0, 1].map { own in Task { try await hold(own) } }
    for task in both { try await task.value }
    #expect(attempts == 3)
  }

  @Test func itIsTriedNoMoreOftenThanAllowed() async throws {
    let pool = try await NumberTable.pool(attempts: 3)
    var attempts = 0
    let error = await failure {
      try await pool.transaction(.readCommitted) { connection in
        attempts += 1
        try await connection.run(script: "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$")
      }
    }
    #expect(attempts == 3 && error?.code == .serialization && error?.isRetriable == true)
  }

  @Test func whatItsFailureWasWrappedIntoMakesNoDifference() async throws {
    let pool = try await NumberTable.pool()
    var attempts = 0
    try await pool.transaction(.readCommitted) { connection in
      attempts += 1
      do {
        if attempts == 1 {
          try await connection.run(script: "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$")
        }
      } catch {
        throw Enough()
      }
    }
    #expect(attempts == 2)
  }

  @Test func aFailureThatWasIgnoredIsNoSuccess() async throws {
    let pool = try await NumberTable.pool()
    let error = await failure {
      try await pool.transaction(.readCommitted) { connection in
        for _ in 0..<2 {
          do throws(PostgreSQLError) {
            try await connection.execute(NumberTable.insertion, Int64(1))
          } catch {
            #expect(error.code == .uniqueViolation)
          }
        }
      }
    }
    #expect(error?.code == .uniqueViolation)
    let values = try await NumberTable.values(pool)
    #expect(values.isEmpty)
  }
}
