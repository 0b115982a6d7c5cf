import EventLoop

extension ConnectionPool {
  /// The pause before a transaction is begun again, at most; it doubles with each attempt.
  private static let pause = Duration.milliseconds(10)

  /// Runs `body` in a transaction, and commits it: all of it has happened then, and nothing where this throws, but for an
  /// error that `isUncertain`: the connection was lost while the server committed.
  ///
  /// `body` runs again, with another transaction, where one that ran beside it keeps it from being committed, or where
  /// its connection broke before; as often as the configuration allows. So what it changes outside of the database has to
  /// bear that. Whatever it throws, all is rolled back. Who is cancelled has changed nothing, unless the commit was on its
  /// way: that is waited for.
  @discardableResult
  public func transaction<Value>(
    _ isolation: PostgreSQLConfiguration.Isolation, _ body: @Loop (Connection) async throws -> Value
  ) async throws -> Value {
    try await repeating { shouldRepeat in
      let connection = try await lease()
      defer { giveBack(connection) }
      return try await connection.transaction(isolation, shouldRepeat: &shouldRepeat, body)
    }
  }

  /// Lends a connection to `body`, which only reads: it runs again with another one where its connection broke or the schema
  /// changed beneath it, as often as the configuration allows.
  public func read<Value>(_ body: @Loop (Connection) async throws -> Value) async throws -> Value {
    try await repeating { shouldRepeat in
      let connection = try await lease()
      defer { giveBack(connection) }
      do {
        return try await body(connection)
      } catch let failure as PostgreSQLError {
        // What was uncertain has changed nothing either.
        shouldRepeat = failure.code.endsOnlyThisAttempt
        throw failure
      }
    }
  }

  private func repeating<Value>(
    _ attempt: @Loop (_ shouldRepeat: inout Bool) async throws -> Value
  ) async throws -> Value {
    var pause = Self.pause
    var attempts = 1
    while true {
      var shouldRepeat = false
      do {
        return try await attempt(&shouldRepeat)
      } catch let failure {
        guard shouldRepeat, attempts < configuration.transactionAttempts else { throw failure }
        do { try await Loop.sleep(for: pause * jitter()) } catch { throw failure }
      }
      attempts += 1
      pause += pause
    }
  }
}
