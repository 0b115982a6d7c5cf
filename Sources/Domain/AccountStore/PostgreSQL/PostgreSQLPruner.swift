import AccountEvents
import EventLoop
import PostgreSQL

/// Finds and forgets what was settled before a moment: pages of rows are looked for while others write, and deleted in
/// transactions of their own. The ledger's rows never change; a step or an attempt that has is left.
@Loop
struct PostgreSQLPruner {
  private struct Place {
    var consumer = ""
    var event = ""
  }

  let database: PostgreSQLStoreDatabase
  /// Since when what was settled stays.
  let time: Timestamp
  /// The consumer that the steps of erasures are of.
  let eraser: ConsumerName

  /// Deletes all of it, or only counts it; calls `each` after each page.
  func run(
    isRehearsal: Bool, each: (StorePruning) -> Void
  ) async throws(AccountStoreError) -> StorePruning {
    var pruning = StorePruning()
    // What the ledger says of an erasure decides about its deletion and its steps: those go first.
    var event = ""
    while true {
      let page = try await deletions(after: event)
      guard let last = page.last else { break }
      pruning.deletions += page.count
      if !isRehearsal { try await delete(page) }
      event = last
      each(pruning)
    }
    event = ""
    while true {
      let page = try await erasures(after: event)
      guard let last = page.last else { break }
      pruning.steps += page.reduce(0) { $0 + $1.steps }
      if !isRehearsal { try await deleteSteps(page.map(\.event)) }
      event = last.event
      each(pruning)
    }
    var place = Place()
    while true {
      let page = try await settled(after: place)
      guard let last = page.last else { break }
      pruning.settled += page.count
      if !isRehearsal { try await deleteSettled(page) }
      place = last
      each(pruning)
    }
    place = Place()
    while true {
      let page = try await attempts(after: place)
      guard let last = page.last else { return pruning }
      pruning.attempts += page.count
      if !isRehearsal { try await deleteAttempts(page) }
      place = last
      each(pruning)
    }
  }

  /// Answered for as long as the ledger says what was done.
  private func deletions(after event: String) async throws(AccountStoreError) -> [String] {
    try await database.read { connection in
      try await connection.query(
        """
        SELECT event_id FROM siwa.deletion WHERE event_id > $1
          AND (SELECT at FROM siwa.ledger WHERE consumer = $2 AND ledger.event_id = deletion.event_id) < $3
          AND NOT EXISTS (
            SELECT FROM siwa.erasure_step AS step
            WHERE step.event_id = deletion.event_id AND step.state NOT IN ('erased', 'discarded'))
        ORDER BY event_id LIMIT $4
        """, event, eraser.text, time.milliseconds, StorePruning.page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in try row.value(0) }
    }
  }

  private func delete(_ deletions: [String]) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute("DELETE FROM siwa.deletion WHERE event_id = ANY ($1)", PostgreSQLArray(deletions))
    }
  }

  /// An erasure is over once it is settled: until then its event may come again, and goes on where it was.
  private func erasures(after event: String) async throws(AccountStoreError) -> [(event: String, steps: Int)] {
    try await database.read { connection in
      try await connection.query(
        """
        SELECT event_id, count(*) FROM siwa.erasure_step AS step WHERE event_id > $1 GROUP BY event_id
        HAVING bool_and(state IN ('erased', 'discarded'))
          AND (SELECT at FROM siwa.ledger WHERE consumer = $2 AND ledger.event_id = step.event_id) < $3
        ORDER BY event_id LIMIT $4
        """, event, eraser.text, time.milliseconds, StorePruning.page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in (event: try row.value(0), steps: try row.count(1) ?? 0) }
    }
  }

  private func deleteSteps(_ events: [String]) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute(
        "DELETE FROM siwa.erasure_step WHERE event_id = ANY ($1) AND state IN ('erased', 'discarded')",
        PostgreSQLArray(events))
    }
  }

  private func settled(after place: Place) async throws(AccountStoreError) -> [Place] {
    try await database.read { connection in
      try await connection.query(
        """
        SELECT consumer, event_id FROM siwa.ledger WHERE (consumer, event_id) > ($1, $2) AND at < $3
          AND NOT EXISTS (
            SELECT FROM siwa.erasure_step AS step
            WHERE step.event_id = ledger.event_id AND step.state NOT IN ('erased', 'discarded'))
        ORDER BY consumer, event_id LIMIT $4
        """, place.consumer, place.event, time.milliseconds, StorePruning.page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in Place(consumer: try row.value(0), event: try row.value(1)) }
    }
  }

  private func deleteSettled(_ places: [Place]) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute(
        """
        DELETE FROM siwa.ledger USING unnest($1, $2) AS gone (consumer, id)
        WHERE ledger.consumer = gone.consumer AND ledger.event_id = gone.id
        """, PostgreSQLArray(places.map(\.consumer)), PostgreSQLArray(places.map(\.event)))
    }
  }

  private func attempts(after place: Place) async throws(AccountStoreError) -> [Place] {
    try await database.read { connection in
      try await connection.query(
        """
        SELECT consumer, event_id FROM siwa.attempt WHERE (consumer, event_id) > ($1, $2) AND last_at < $3
          AND NOT EXISTS (
            SELECT FROM siwa.erasure_step AS step
            WHERE step.event_id = attempt.event_id AND step.state NOT IN ('erased', 'discarded'))
        ORDER BY consumer, event_id LIMIT $4
        """, place.consumer, place.event, time.milliseconds, StorePruning.page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in Place(consumer: try row.value(0), event: try row.value(1)) }
    }
  }

  private func deleteAttempts(_ places: [Place]) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute(
        """
        DELETE FROM siwa.attempt USING unnest($1, $2) AS gone (consumer, id)
        WHERE attempt.consumer = gone.consumer AND attempt.event_id = gone.id AND attempt.last_at < $3
        """, PostgreSQLArray(places.map(\.consumer)), PostgreSQLArray(places.map(\.event)), time.milliseconds)
    }
  }
}
