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
    var batch = Batch()
    for (step, event) in steps { PostgreSQLErasures.record(step, of: event, in: &batch) }
    let writing = batch
    try await database.write { connection in _ = try await connection.run(writing) }
  }

  /// What is open of erasures.
  func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [OpenErasure] {
    try await database.read { connection in
      try await PostgreSQLErasures.open(by: consumer, after: place, limit: limit, with: connection)
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
    of event: EventID, target: String?, note: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Int {
    try await database.write { connection in
      try await PostgreSQLErasures.discard(event, target: target, note: note, at: time, with: connection)
    }
  }

  /// The steps retained until that time.
  func dueErasures(
    until time: Timestamp, of account: AccountHash?, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [RetainedStep] {
    try await database.read { connection in
      try await PostgreSQLErasures.due(until: time, of: account, after: place, limit: limit, with: connection)
    }
  }
}
