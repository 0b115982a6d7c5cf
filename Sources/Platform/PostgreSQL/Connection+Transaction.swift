import EventLoop

extension PostgreSQLConfiguration.Isolation {
  /// How a transaction of it is begun.
  fileprivate var beginning: StaticString {
    switch self {
    case .readCommitted: "BEGIN ISOLATION LEVEL READ COMMITTED"
    case .repeatableRead: "BEGIN ISOLATION LEVEL REPEATABLE READ"
    case .serializable: "BEGIN ISOLATION LEVEL SERIALIZABLE"
    }
  }
}

extension Connection {
  /// Runs `body` in a transaction, and commits it. It begins with the first statement, in the same exchange.
  ///
  /// Throws what `body` threw once all is rolled back, or why it could not be committed. `shouldRepeat` says whether the
  /// same may succeed at once, with the transaction's own failure to tell: whoever wrote `body` may have wrapped it.
  func transaction<Value>(
    _ isolation: PostgreSQLConfiguration.Isolation, shouldRepeat: inout Bool,
    _ body: @Loop (Connection) async throws -> Value
  ) async throws -> Value {
    precondition(transaction == nil, "a transaction within a transaction")
    transaction = Transaction(beginning: isolation.beginning)
    defer { transaction = nil }
    do {
      let value = try await body(self)
      try await commit()
      return value
    } catch {
      shouldRepeat = transaction?.failure?.endsOnlyThisAttempt ?? false
      guard var own = error as? PostgreSQLError else {
        // The server says by itself what it cannot roll back: it does so with the connection's end.
        _ = await rollBack()
        throw error
      }
      own.rollbackFailure = await rollBack()?.detail
      throw own
    }
  }

  private func commit() async throws(PostgreSQLError) {
    guard let transaction, transaction.hasBegun || transaction.failure != nil else { return }
    if let failure = transaction.failure { throw failure }
    if Task.isCancelled { throw PostgreSQLError.cancelled }
    try await exchange([.command("COMMIT")], isFinal: true)
    self.transaction?.hasBegun = false
  }

  /// Rolls back what has begun; returns why that failed. Where the connection is lost, the server does it.
  private func rollBack() async -> PostgreSQLError? {
    guard link.end == nil, transaction?.hasBegun == true else { return nil }
    do throws(PostgreSQLError) {
      try await exchange([.command("ROLLBACK")], isFinal: true)
      return nil
    } catch {
      link.end(error)
      return error
    }
  }
}

extension Connection {
  /// Whether another task can have it: it stands, and nothing is going on in it.
  var isReusable: Bool { !isBusy && link.isIdle && !isReadOnly }
}
