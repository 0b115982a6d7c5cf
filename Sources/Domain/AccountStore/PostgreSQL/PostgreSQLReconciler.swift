import AccountEvents
import EventLoop
import PostgreSQL

/// Brings a store that was restored to what outcomes on Kafka say.
@Loop
struct PostgreSQLReconciler {
  let keyed: PostgreSQLKeyedDatabase

  /// Whether one of them is of this store.
  func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    try await keyed.refresh()
    return try await keyed.read(of: []) { connection, keys in
      let current = try CurrentOutcomes(outcomes, keys).outcomes
      return try await Self.recognizes(current, keys, with: connection)
    }
  }

  private static func recognizes(
    _ outcomes: [RecordedOutcome], _ keys: StoreKeys, with connection: Connection
  ) async throws -> Bool {
    var batch = Batch.byKey
    batch.append(
      """
      SELECT FROM unnest($1, $2, $3) AS said (consumer, event_id, hash)
      WHERE EXISTS (
          SELECT FROM siwa.ledger WHERE ledger.consumer = said.consumer AND ledger.event_id = said.event_id
            AND ledger.hash = said.hash)
        OR EXISTS (SELECT FROM siwa.account WHERE account.hash = said.hash)
        OR EXISTS (SELECT FROM siwa.erasure_fence AS erasure WHERE erasure.hash = said.hash)
      LIMIT 1
      """, PostgreSQLArray(outcomes.map(\.consumer.text)), PostgreSQLArray(outcomes.map(\.event.text)),
      PostgreSQLArray(outcomes.map(\.account.bytes)))
    return try await connection.run(batch, holding: keys) { _, _ throws(PostgreSQLError) in }[1] > 0
  }

  /// Corrects what outcomes contradict, in one transaction.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    // Whether a rotation is under way decides before anything is read.
    try await keyed.refresh()
    let found = try await keyed.read(of: []) { connection, keys in
      let current = try CurrentOutcomes(outcomes, keys)
      let endings = Endings.gather(current.outcomes)
      let accounts = try await Self.accounts(of: Array(endings.keys), keys, with: connection)
      let wrong = Endings.corrections(of: accounts, by: endings)
      return (
        newest: keys.hashing.newest, wrong: Set(wrong.map(\.account.hash)),
        change: Reconciliation(wrong, unknownKeys: current.unknownKeys)
      )
    }
    if isRehearsal || found.wrong.isEmpty { return found.change }
    // Mostly a few: those alone are locked, and judged anew. Under a key that has been replaced since, they are not found.
    return try await keyed.write(to: []) { connection, keys in
      let current = try CurrentOutcomes(outcomes, keys)
      let isSameKey = keys.hashing.newest == found.newest
      let endings = Endings.gather(current.outcomes).filter { !isSameKey || found.wrong.contains($0.key) }
      let hashes = Array(endings.keys)
      var batch = Batch.locked
      batch.lock(hashes, keys)
      let first = batch.count
      Self.read(hashes, in: &batch)
      PostgreSQLFacts.readKept(hashes, in: &batch)
      var accounts: [RestoredAccount] = []
      var kept: [AccountHash: KeptAccount] = [:]
      try await connection.run(locked: batch, keys) { execution, row throws(PostgreSQLError) in
        if execution == first {
          accounts.append(try RestoredAccount(reading: row))
        } else {
          try kept.add(row, of: execution - first - 1)
        }
      }
      let wrong = Endings.corrections(of: accounts, by: endings)
      var changed: [ChangedAccount] = []
      for (account, correction) in wrong {
        var change = ChangedAccount(account.hash, account.facts, kept: kept[account.hash])
        try change.apply(correction, account.row, keys)
        changed.append(change)
      }
      var writing = Batch()
      try PostgreSQLWrites.write(changed, keys, in: &writing)
      let unnamed = Set(changed.filter { $0.isErased && $0.erasedID == nil }.map(\.hash))
      if !unnamed.isEmpty {
        let found = try await connection.transferredAccounts(under: unnamed, keys)
        PostgreSQLTransfers.remove(found, in: &writing)
      }
      _ = try await connection.run(writing)
      return Reconciliation(wrong, unknownKeys: current.unknownKeys)
    }
  }

  private static func accounts(
    of hashes: [AccountHash], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [RestoredAccount] {
    var batch = Batch.byKey
    read(hashes, in: &batch)
    var accounts: [RestoredAccount] = []
    try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
      if execution == 1 { accounts.append(try RestoredAccount(reading: row)) }
    }
    return accounts
  }

  /// Adds one execution: a row for each account.
  private static func read(_ hashes: [AccountHash], in batch: inout Batch) {
    batch.append(
      """
      SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
        said.hash, account.team, account.subject,
        (SELECT since FROM siwa.relay WHERE relay.hash = said.hash),
        (SELECT min(issued_at) FROM siwa.token WHERE token.hash = said.hash),
        (SELECT issued_up_to FROM siwa.ended_authorization AS ended WHERE ended.hash = said.hash AND client = '')
      FROM unnest($1) AS said (hash) LEFT JOIN siwa.account ON account.hash = said.hash
        LEFT JOIN siwa.erasure_fence AS erasure ON erasure.hash = said.hash
      """, PostgreSQLArray(hashes.map(\.bytes)))
  }
}

extension RestoredAccount {
  fileprivate init(reading row: borrowing Row) throws(PostgreSQLError) {
    let (hash, facts) = (try row.hash(6), try AccountFacts(reading: row, from: 0))
    self.init(
      hash: hash, facts: facts, mailSince: try row.timeIfPresent(9), oldestToken: try row.timeIfPresent(10),
      tokensEndedAt: try row.timeIfPresent(11))
    if let key = facts.key {
      self.row = SealedAccount(hash: hash, team: try row.value(7), subject: try row.value(8), key: key)
    }
  }
}
