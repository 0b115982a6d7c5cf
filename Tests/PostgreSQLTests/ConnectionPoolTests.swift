import EventLoop
import PostgreSQL
import TestSupport
import Testing

/// Who gets a connection, when, and why not.
@Loop @Suite(PostgreSQLServer.isThere) struct ConnectionPoolTests {
  @Test func whoWaitsGetsItsTurnInOrder() async throws {
    let pool = try await TestPool.fresh(size: 2).pool
    let (held, over) = (Signal(), Signal())
    var (inside, most) = (0, 0)
    var order: [Int] = []
    let use: @Loop (Int) async throws -> Void = { number in
      try await pool.withConnection { connection in
        inside += 1
        most = max(most, inside)
        order.append(number)
        if inside == 2 { held.fire() }
        if number < 2 { await over.wait() }
        try await connection.execute("SELECT")
        inside -= 1
      }
    }
    // A connection each, which are kept; then eight that wait.
    let first = (0..<2).map { number in Task { try await use(number) } }
    await held.wait()
    var rest: [Task<Void, any Error>] = []
    for number in 2..<10 {
      // On the loop, so that it stands in the queue before the next one comes.
      rest.append(Task(executorPreference: Loop.executor) { try await use(number) })
      await turn()
    }
    #expect(order.count == 2)
    over.fire()
    for task in first + rest { try await task.value }
    #expect(order.dropFirst(2) == [2, 3, 4, 5, 6, 7, 8, 9] && most == 2)
  }

  @Test func whoeverWaitsTooLongIsTold() async throws {
    let database = try await PostgreSQLServer.shared().makeDatabase()
    let pool = try TestPool(database, size: 1, leaseTimeout: .seconds(60)).pool
    try await pool.withConnection { connection in
      try await connection.execute("SELECT")
      let error = await failure { try await pool.withConnection { _ in } }
      #expect(error?.code == .exhausted && error?.isRetriable == true)
    }
    try await pool.withConnection { _ in }
  }

  @Test func whoIsCancelledLeavesTheQueue() async throws {
    let pool = try await TestPool.fresh(size: 1).pool
    try await pool.withConnection { _ in
      let task = Task { try await pool.withConnection { _ in } }
      await turn()
      task.cancel()
      let error = await failure { try await task.value }
      #expect(error?.code == .cancelled && error?.isUncertain == false)
    }
    try await pool.withConnection { _ in }
  }

  @Test func closingWaitsForWhatIsLent() async throws {
    let pool = try await TestPool.fresh(size: 1).pool
    let (isLent, mayEnd) = (Signal(), Signal())
    let lent = Task {
      try await pool.withConnection { connection in
        isLent.fire()
        await mayEnd.wait()
        return try await connection.execute("SELECT")
      }
    }
    await isLent.wait()
    let waiting = Task { try await pool.withConnection { _ in } }
    await turn()
    let closing = Task { await pool.close(within: .seconds(600)) }
    #expect(await failure { try await waiting.value }?.code == .closed)
    mayEnd.fire()
    await closing.value
    #expect(try await lent.value == 1)
    #expect(await failure { try await pool.withConnection { _ in } }?.code == .closed)
  }

  @Test func closingEndsWhatIsNotGivenBack() async throws {
    let pool = try await TestPool.fresh(size: 1).pool
    let isLent = Signal()
    let lent = Task {
      try await pool.withConnection { connection in
        isLent.fire()
        try await connection.execute("SELECT pg_sleep(1000)")
      }
    }
    await isLent.wait()
    await pool.close(within: .milliseconds(1))
    #expect(await failure { _ = try await lent.value }?.code == .closed)
  }

  @Test func aConnectionThatTheServerEndedIsForgotten() async throws {
    let test = try await TestPool.fresh(size: 1)
    let pool = test.pool
    let number: @Loop (Connection) async throws -> Int64? = { connection in
      try await connection.first("SELECT pg_backend_pid()") { row throws(PostgreSQLError) in try row.value(0) }
    }
    let first = try #require(try await pool.withConnection(number))
    try await PostgreSQLServer.shared().psql("SELECT pg_terminate_backend(\(first))", database: "postgres")
    try await until { test.notices.texts.contains { $0.hasPrefix("FATAL 57P01") } }
    let second = try await pool.withConnection(number)
    #expect(second != first)
  }

  @Test func aConnectionWithAnOpenTransactionIsNotLentAgain() async throws {
    let pool = try await TestPool.fresh(size: 1).pool
    try await pool.withConnection { try await $0.run(script: "BEGIN; CREATE TABLE number ()") }
    let error = await failure { try await pool.withConnection { _ = try await $0.execute("SELECT FROM number") } }
    #expect(error?.sqlState == "42P01")
  }

  @Test func aStatementThatTakesTooLongIsEnded() async throws {
    let pool = try await TestPool.fresh(statementTimeout: .seconds(5)).pool
    try await pool.withConnection { connection in
      let error = await failure { try await connection.execute("SELECT pg_sleep(1000)") }
      #expect(error?.code == .statementTimeout && error?.isUncertain == false)
      let next = try await connection.execute("SELECT")
      #expect(next == 1)
    }
  }

  /// What a host that is gone, or frozen, has locked is free again by then.
  @Test func aTransactionThatNobodyGoesOnWithIsEndedByTheServer() async throws {
    let pool = try await TestPool.fresh().pool
    let limit = try await pool.withConnection { connection in
      try await connection.first("SHOW idle_in_transaction_session_timeout") { row throws(PostgreSQLError) in
        try row.value(0) as String
      }
    }
    #expect(limit == "30s")
  }

  @Test func aServerThatDoesNotAnswerIsGivenUp() async throws {
    let database = try await PostgreSQLServer.shared().makeDatabase()
    let pool = try TestPool(database, size: 2, statementTimeout: .seconds(20), responseTimeout: .seconds(30)).pool
    let other = try await pool.withConnection { _ in try await backend(pool) }
    let error = await failure {
      try await pool.withConnection { connection in
        try await connection.run(script: "SET statement_timeout = 0; SELECT pg_sleep(1000)")
      }
    }
    #expect(error?.code == .unanswered && error?.isUncertain == true)
    // The other one leads to the same server.
    #expect(try await backend(pool) != other)
  }

  private nonisolated static let backend: StaticString = "SELECT pg_backend_pid()"

  private func backend(_ pool: ConnectionPool) async throws -> Int64? {
    try await pool.withConnection { connection in
      try await connection.first(Self.backend) { row throws(PostgreSQLError) in try row.value(0) }
    }
  }

  @Test(arguments: [(Duration.zero, Duration.seconds(3600)), (.seconds(3600), .zero), (.seconds(3600), .seconds(3600))])
  func aConnectionIsNotLentForEver(life: Duration, idle: Duration) async throws {
    let database = try await PostgreSQLServer.shared().makeDatabase()
    let pool = try TestPool(database, size: 1, longestLife: life, longestIdle: idle).pool
    let (first, second) = (try await backend(pool), try await backend(pool))
    #expect((first == second) == (life > .zero && idle > .zero))
  }

  /// As where a server was demoted and another one is the first now, behind the same name.
  @Test func aConnectionThatCannotWriteIsNotLentAgain() async throws {
    let pool = try await NumberTable.pool(size: 2)
    let both = try await pool.withConnection { _ in (try await backend(pool), try await backend(pool)) }
    #expect(both.0 == both.1)
    for _ in 1...2 {
      // Whichever it gets; the other one is idle.
      let error = await failure {
        try await pool.withConnection { connection in
          try await connection.run(script: "SET default_transaction_read_only = on")
          try await connection.execute(NumberTable.insertion, Int64(1))
        }
      }
      #expect(error?.code == .readOnly)
      try await pool.transaction(.readCommitted) { _ = try await $0.execute(NumberTable.insertion, Int64(1)) }
      try await pool.withConnection { try await $0.run(script: "DELETE FROM number") }
    }
    let after = try await backend(pool)
    #expect(after != both.0)
  }
}
