import EventLoop
import PostgreSQL
import TestSupport
import Testing

/// What becomes of a transaction whose connection, server or task ends.
@Loop @Suite(PostgreSQLServer.isThere) struct LostTransactionTests {
  @Test func aConnectionLostBeforeTheCommitIsMadeGood() async throws {
    let pool = try await NumberTable.pool()
    var attempts = 0
    try await pool.transaction(.readCommitted) { connection in
      attempts += 1
      try await connection.execute(NumberTable.insertion, Int64(attempts))
      if attempts == 1 { try await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())") }
    }
    let values = try await NumberTable.values(pool)
    #expect(attempts == 2 && values == [2])
  }

  @Test func aConnectionLostWhileReadingIsMadeGood() async throws {
    let pool = try await NumberTable.pool()
    var attempts = 0
    let count = try await pool.read { connection in
      attempts += 1
      if attempts == 1 { try await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())") }
      return try await connection.execute("SELECT")
    }
    #expect(attempts == 2 && count == 1)
  }

  @Test func whatIsLostDuringTheCommitIsUncertain() async throws {
    let pool = try await NumberTable.pool()
    try await pool.withConnection { connection in
      try await connection.run(
        script: """
          CREATE FUNCTION end_it() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
          CREATE CONSTRAINT TRIGGER last AFTER INSERT ON number DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION end_it();
          """)
    }
    var attempts = 0
    let error = await failure {
      try await pool.transaction(.readCommitted) { connection in
        attempts += 1
        try await connection.execute(NumberTable.insertion, Int64(1))
      }
    }
    #expect(attempts == 1 && error?.isUncertain == true && error?.isRetriable == false)
    #expect(error?.code == .unavailable && error?.sqlState == "57P01")
    let alone = await failure {
      _ = try await pool.withConnection { try await $0.execute(NumberTable.insertion, Int64(2)) }
    }
    #expect(alone?.isUncertain == true)
  }

  @Test func whoIsCancelledGivesTheConnectionUpAndHasChangedNothing() async throws {
    let pool = try await NumberTable.pool()
    let isWaiting = Signal()
    let task = Task {
      try await pool.transaction(.readCommitted) { connection in
        try await connection.execute(NumberTable.insertion, Int64(1))
        isWaiting.fire()
        try await connection.execute("SELECT pg_sleep(1000) -- for long")
      }
    }
    await isWaiting.wait()
    // Until the server works on it: it is to be stopped there too.
    let count: StaticString =
      "SELECT FROM pg_stat_activity WHERE query LIKE '% -- for long' AND pid <> pg_backend_pid()"
    try await until { try await pool.withConnection { try await $0.execute(count) } == 1 }
    task.cancel()
    let error = await failure { try await task.value }
    #expect(error?.code == .cancelled && error?.isUncertain == false)
    try await until { try await pool.withConnection { try await $0.execute(count) } == 0 }
    let values = try await NumberTable.values(pool)
    #expect(values.isEmpty)
  }

  @Test func whoIsCancelledBeforeTheCommitHasChangedNothing() async throws {
    let pool = try await NumberTable.pool()
    let task = Task {
      try await pool.transaction(.readCommitted) { connection in
        try await connection.execute(NumberTable.insertion, Int64(1))
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      }
    }
    let error = await failure { try await task.value }
    #expect(error?.code == .cancelled && error?.isUncertain == false)
    let values = try await NumberTable.values(pool)
    #expect(values.isEmpty)
  }

  @Test func aCommitOnItsWayIsNotCancelled() async throws {
    let pool = try await NumberTable.pool()
    try await pool.withConnection { connection in
      try await connection.run(
        script: """
          CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
          CREATE CONSTRAINT TRIGGER last AFTER INSERT ON number DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION wait();
          """)
    }
    try await pool.transaction(.readCommitted) { holder in
      try await holder.execute("SELECT pg_advisory_xact_lock(1)")
      let task = Task {
        try await pool.transaction(.readCommitted) { try await $0.execute(NumberTable.insertion, Int64(1)) }
      }
      try await until {
        try await holder.execute(
          """
          SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database AND datname = current_database()
            WHERE locktype = 'advisory' AND NOT granted
          """) == 1
      }
      task.cancel()
      await turn()
      Task { _ = try await task.value }
    }
    try await until { try await NumberTable.values(pool) == [1] }
  }

  @Test func aServerThatIsKilledInATransactionComesBack() async throws {
    let server = try await PostgreSQLServer()
    let pool = try TestPool(await server.makeDatabase()).pool
    try await pool.withConnection { try await $0.run(script: NumberTable.schema) }
    try await pool.transaction(.serializable) { try await $0.execute(NumberTable.insertion, Int64(0)) }
    var attempts = 0
    try await pool.transaction(.serializable) { connection in
      attempts += 1
      try await connection.execute(NumberTable.insertion, Int64(attempts))
      if attempts == 1 {
        server.kill()
        try await server.start()
      }
      try await connection.execute(NumberTable.insertion, Int64(10))
    }
    let values = try await NumberTable.values(pool)
    #expect(attempts == 2 && values == [0, 2, 10])
  }
}
