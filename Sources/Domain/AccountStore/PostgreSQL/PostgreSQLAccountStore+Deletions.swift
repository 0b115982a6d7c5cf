import AccountEvents
import PostgreSQL

extension PostgreSQLAccountStore {
  /// Writes a request for a deletion and its event, or finds the one of before.
  func requestDeletion(
    of account: Account, in client: ClientID, as request: EventID, at time: Timestamp
  ) async throws(AccountStoreError) -> Deletion? {
    try await keyed.write(to: CollectionOfOne(account)) { connection, keys in
      let (hash, id) = (keys.hash(of: account), keys.id(of: account))
      var reading = Batch.locked
      reading.lock([hash], keys)
      let first = reading.count
      reading.append(
        """
        SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
          (SELECT max(issued_at) FROM siwa.token WHERE token.hash = asked.hash)
        FROM (VALUES ($1)) AS asked (hash) LEFT JOIN siwa.account USING (hash)
          LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
        """, hash.bytes)
      reading.appendLastDeletion(of: id)
      var facts = DeletionFacts()
      try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        switch execution {
        case first:
          facts.account = try AccountFacts(reading: row, from: 0)
          facts.newestToken = try row.timeIfPresent(6)
        case first + 1: facts.last = try Deletion(reading: row)
        default: break
        }
      }
      switch facts.judgement(of: request, account, id, in: client, at: time) {
      case .nothing: return nil
      case .same(let deletion): return deletion
      case .new(let deletion):
        var writing = Batch()
        writing.append(
          """
          INSERT INTO siwa.deletion (event_id, account, team, client, requested_at, had_tokens)
          VALUES ($1, $2, $3, $4, $5, $6)
          """, deletion.id.text, deletion.account.bytes, deletion.team.text, deletion.client.text,
          deletion.requestedAt.milliseconds, deletion.hadTokens)
        // No exchange that is under way was begun later.
        writing.append(
          "UPDATE siwa.code_exchange SET begun_at = $2 WHERE account = $1 AND outcome = 'begun' AND begun_at > $2",
          deletion.account.bytes, deletion.requestedAt.milliseconds)
        writing.add(try keys.seal(deletion, of: account, at: time))
        _ = try await connection.run(writing)
        return deletion
      }
    }
  }

  /// The one that was asked for last.
  func lastDeletion(of account: AccountID) async throws(AccountStoreError) -> Deletion? {
    var batch = Batch()
    batch.appendLastDeletion(of: account)
    let reading = batch
    return try await database.read { connection in
      var deletion: Deletion?
      try await connection.run(reading) { _, row throws(PostgreSQLError) in deletion = try Deletion(reading: row) }
      return deletion
    }
  }

  /// When the youngest sign-in was begun of which nothing has come yet.
  func signInUnderWay(
    of account: AccountID, after time: Timestamp, until end: Timestamp
  ) async throws(AccountStoreError) -> Timestamp? {
    let begunAt = try await database.read { connection in
      try await connection.first(
        """
        SELECT max(begun_at) FROM siwa.code_exchange
        WHERE begun_at > $2 AND begun_at <= $3 AND account = $1 AND outcome = 'begun'
        """, account.bytes, time.milliseconds, end.milliseconds
      ) { row throws(PostgreSQLError) in try row.timeIfPresent(0) }
    }
    return begunAt ?? nil
  }

  /// How far it is.
  func deletion(
    _ id: EventID, by consumers: [ConsumerName]
  ) async throws(AccountStoreError) -> DeletionProgress? {
    var batch = Batch()
    batch.append(
      "SELECT event_id, account, team, client, requested_at, had_tokens FROM siwa.deletion WHERE event_id = $1", id.text
    )
    batch.append("SELECT NOT EXISTS (SELECT FROM siwa.outbox WHERE event_id = $1)", id.text)
    batch.append(
      """
      SELECT at, outcome, detail, topic, partition, "offset", consumer FROM siwa.ledger
      WHERE consumer = ANY ($1) AND event_id = $2
      """, PostgreSQLArray(consumers.map(\.text)), id.text)
    let reading = batch
    return try await database.snapshot { connection in
      var deletion: Deletion?
      var isPublished = false
      var entries: [ConsumerName: LedgerEntry] = [:]
      try await connection.run(reading) { execution, row throws(PostgreSQLError) in
        switch execution {
        case 0: deletion = try Deletion(reading: row)
        case 1: isPublished = try row.value(0)
        default:
          let name: String = try row.value(6)
          guard let consumer = consumers.first(where: { $0.text == name }) else { return }
          entries[consumer] = LedgerEntry(
            at: try row.time(0), outcome: try row.value(1), detail: try row.value(2),
            origin: EventOrigin(
              topic: try row.value(3), partition: Int32(clamping: try row.value(4, as: Int64.self)),
              offset: try row.value(5)))
        }
      }
      guard let deletion else { return nil }
      let steps = try await PostgreSQLErasures.steps(of: [id], with: connection)
      return DeletionProgress(deletion, isPublished: isPublished, entries: entries, steps: steps.first ?? [])
    }
  }
}

extension PostgreSQLAccountStore {
  /// Those that are neither carried out nor void.
  func openDeletions(
    _ revoker: ConsumerName, _ eraser: ConsumerName, limit: Int
  ) async throws(AccountStoreError) -> [OpenDeletion] {
    let unsettled = try await database.read { connection in
      try await connection.query(
        """
        SELECT account, requested_at, NOT EXISTS (SELECT FROM siwa.outbox WHERE outbox.event_id = deletion.event_id),
          EXISTS (SELECT FROM siwa.ledger WHERE consumer = $1 AND ledger.event_id = deletion.event_id)
        FROM siwa.deletion
        WHERE NOT EXISTS (SELECT FROM siwa.ledger WHERE consumer = $2 AND ledger.event_id = deletion.event_id)
        ORDER BY requested_at, event_id LIMIT $3
        """, revoker.text, eraser.text, Int64(limit), limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        guard let account = AccountID(bytes: try row.value(0)) else { throw .unexpectedValue("a deletion") }
        return OpenDeletion(
          account, requestedAt: try row.time(1), isPublished: try row.value(2), isRevoked: try row.value(3))
      }
    }
    if unsettled.isEmpty { return [] }
    return try await keyed.write(to: [Account](), and: unsettled.map(\.account)) { connection, keys in
      var reading = Batch.locked
      let first = reading.count
      reading.append(
        """
        SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
        FROM unnest($1) WITH ORDINALITY AS asked (hash, position) LEFT JOIN siwa.account USING (hash)
          LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
        ORDER BY position
        """, PostgreSQLArray(unsettled.map { keys.hash(of: $0.account).bytes }))
      var facts: [AccountFacts] = []
      try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        if execution == first { facts.append(try AccountFacts(reading: row, from: 0)) }
      }
      return zip(unsettled, facts).filter { !$0.isOver($1) }.map(\.0)
    }
  }
}

extension Batch {
  /// Adds an execution that reads the deletion that was asked for last.
  mutating func appendLastDeletion(of account: AccountID) {
    append(
      """
      SELECT event_id, account, team, client, requested_at, had_tokens FROM siwa.deletion
      WHERE account = $1 ORDER BY requested_at DESC LIMIT 1
      """, account.bytes)
  }
}

extension Deletion {
  /// Reads a row.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let id = EventID(try row.value(0)), let account = AccountID(bytes: try row.value(1)),
      let team = TeamID(try row.value(2)), let client = ClientID(try row.value(3))
    else { throw .unexpectedValue("a deletion") }
    self.init(
      id: id, account: account, team: team, client: client, requestedAt: try row.time(4), hadTokens: try row.value(5))
  }
}
