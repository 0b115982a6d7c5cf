import AccountEvents
import EventLoop
import PostgreSQL

extension PostgreSQLAccountStore {
  /// The steps of erasures, in one exchange with the server.
  func erasureSteps(of events: [EventID]) async throws(AccountStoreError) -> [[ErasureStep]] {
    try await database.read { connection in try await PostgreSQLErasures.steps(of: events, with: connection) }
  }

  /// Records steps of erasures, in one exchange with the server.
  func record(_ steps: [(step: ErasureStep, event: EventReference)]) async throws(AccountStoreError) {
    try await keyed.write(to: []) { connection, keys in
      var batch = Batch.locked
      for (step, event) in steps {
        PostgreSQLErasures.record(step, of: keys.current(event), generation: keys.generation, in: &batch)
      }
      _ = try await connection.run(locked: batch, keys) { _, _ throws(PostgreSQLError) in }
    }
  }

  /// What is open of erasures.
  func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [OpenErasure] {
    try await keyed.read(of: []) { connection, keys in
      try await PostgreSQLErasures.open(by: consumer, after: place, limit: limit, keys, with: connection)
    }
  }

  /// What erasures have left open that no weightier one covers, in one exchange with the server.
  func uncoveredTargets(of events: [EventReference]) async throws(AccountStoreError) -> [[String]] {
    try await keyed.read(of: []) { connection, keys in
      try await PostgreSQLErasures.uncoveredTargets(of: events, keys, with: connection)
    }
  }

  /// How many erasures have failed and are not done.
  func incompleteErasures(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await database.read { connection in
      try await PostgreSQLErasures.countOfIncomplete(by: consumer, with: connection)
    }
  }

  /// How many erasures a target is at work on.
  func erasuresInProgress(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await database.read { connection in
      try await PostgreSQLErasures.countInProgress(by: consumer, with: connection)
    }
  }

  /// Closes steps of an erasure.
  func discardErasure(
    of event: EventID, account: Account?, target: String?, note: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Int {
    try await keyed.write(to: account.map { [$0] } ?? []) { connection, keys in
      try await PostgreSQLErasures.discard(
        event, of: account, target: target, note: note, at: time, keys, with: connection)
    }
  }

  /// The steps retained until that time.
  func dueErasures(
    until time: Timestamp, of account: Account?, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [RetainedStep] {
    try await keyed.read(of: []) { connection, keys in
      try await PostgreSQLErasures.due(until: time, of: account, after: place, limit: limit, keys, with: connection)
    }
  }
}
