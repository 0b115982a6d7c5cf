import AccountEvents
import EventLoop
import PostgreSQL

/// Brings a store that was restored to what outcomes on Kafka say.
@Loop
struct PostgreSQLReconciler {
  /// What the database knows of an account that outcomes may contradict.
  struct Row {
    let hash: AccountHash
    let facts: ReconciledFacts
    let account: SealedAccount?
  }

  let database: PostgreSQLStoreDatabase
  let keys: StoreKeys

  /// Whether one of them is of this store.
  func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    var batch = Batch.byKey
    batch.append(
      """
      SELECT FROM unnest($1, $2, $3) AS said (consumer, event_id, hash)
      WHERE EXISTS (
          SELECT FROM siwa.ledger WHERE ledger.consumer = said.consumer AND ledger.event_id = said.event_id
            AND ledger.hash = said.hash)
        OR EXISTS (SELECT FROM siwa.account WHERE account.hash = said.hash)
        OR EXISTS (SELECT FROM siwa.erasure WHERE erasure.hash = said.hash)
      LIMIT 1
      """, PostgreSQLArray(outcomes.map(\.consumer.text)), PostgreSQLArray(outcomes.map(\.event.text)),
      PostgreSQLArray(outcomes.map(\.account.bytes)))
    let reading = batch
    return try await database.read { connection in try await connection.run(reading)[1] > 0 }
  }

  /// Corrects what outcomes contradict, in one transaction.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    let endings = Endings.gather(outcomes)
    func corrections(_ rows: [Row]) -> [(row: Row, correction: Correction)] {
      rows.compactMap { row in
        guard let endings = endings[row.hash] else { return nil }
        let correction = Correction(of: row.facts, by: endings)
        return correction.isNothing ? nil : (row, correction)
      }
    }
    let all = Array(endings.keys)
    let found = try await database.read { connection in try await Self.rows(of: all, with: connection) }
    let wrong = corrections(found)
    if isRehearsal || wrong.isEmpty { return Reconciliation(wrong) }
    // Mostly a few: those alone are locked, and judged anew.
    let hashes = wrong.map(\.row.hash)
    return try await database.write { [keys] connection in
      var batch = Batch.byKey
      batch.lock(hashes)
      Self.read(hashes, in: &batch)
      PostgreSQLKept.read(hashes, in: &batch)
      var rows: [Row] = []
      var kept: [AccountHash: PostgreSQLKept] = [:]
      try await connection.run(batch) { execution, row throws(PostgreSQLError) in
        switch execution {
        case 3: rows.append(try Row(reading: row))
        case 4: try PostgreSQLKept.addRelay(reading: row, to: &kept)
        case 5: try PostgreSQLKept.addToken(reading: row, to: &kept)
        default: break
        }
      }
      let wrong = corrections(rows)
      var changed: [ChangedAccount] = []
      for (row, correction) in wrong {
        var account = ChangedAccount(row.hash, row, kept: kept[row.hash], keys)
        try account.apply(correction, row.account)
        changed.append(account)
      }
      var writing = Batch()
      try PostgreSQLWrites.write(changed, in: &writing)
      _ = try await connection.run(writing)
      return Reconciliation(wrong)
    }
  }

  private static func rows(of hashes: [AccountHash], with connection: Connection) async throws -> [Row] {
    var batch = Batch.byKey
    read(hashes, in: &batch)
    var rows: [Row] = []
    try await connection.run(batch) { execution, row throws(PostgreSQLError) in
      if execution == 1 { rows.append(try Row(reading: row)) }
    }
    return rows
  }

  /// Adds one execution: a row for each account.
  private static func read(_ hashes: [AccountHash], in batch: inout Batch) {
    batch.append(
      """
      SELECT said.hash, account.team, account.subject, account.data_key, account.master_key_id, account.signed_in_at,
        erasure.at, erasure.is_final, erasure.signed_in_at,
        (SELECT since FROM siwa.relay WHERE relay.hash = said.hash),
        (SELECT min(issued_at) FROM siwa.token WHERE token.hash = said.hash),
        (SELECT issued_up_to FROM siwa.ended_authorization AS ended WHERE ended.hash = said.hash AND client = '')
      FROM unnest($1) AS said (hash) LEFT JOIN siwa.account ON account.hash = said.hash
        LEFT JOIN siwa.erasure ON erasure.hash = said.hash
      """, PostgreSQLArray(hashes.map(\.bytes)))
  }
}

extension PostgreSQLReconciler.Row {
  fileprivate init(reading row: borrowing Row) throws(PostgreSQLError) {
    let hash = try row.hash(0)
    self.hash = hash
    account =
      try row.value(1, as: String?.self) == nil
      ? nil
      : SealedAccount(
        hash: hash, team: try row.value(1), subject: try row.value(2), dataKey: try row.value(3),
        masterKeyID: try row.value(4))
    let erasedAt = try row.timeIfPresent(6)
    facts = ReconciledFacts(
      isKept: account != nil, accountSignedInAt: try row.timeIfPresent(5),
      erasure: try erasedAt.map { at throws(PostgreSQLError) in ErasureFence(at: at, isFinal: try row.value(7)) },
      erasureSignedInAt: try row.timeIfPresent(8), mailSince: try row.timeIfPresent(9),
      oldestToken: try row.timeIfPresent(10), tokensEndedAt: try row.timeIfPresent(11))
  }
}

extension Reconciliation {
  fileprivate init(_ corrections: [(row: PostgreSQLReconciler.Row, correction: Correction)]) {
    self.init()
    for (row, correction) in corrections { note(correction, of: row.hash) }
  }
}
