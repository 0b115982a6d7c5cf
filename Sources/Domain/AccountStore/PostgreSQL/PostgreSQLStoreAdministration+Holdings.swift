import AccountEvents
import PostgreSQL

extension PostgreSQLStoreAdministration {
  func holdings(of account: Account) async throws(AccountStoreError) -> AccountHoldings {
    try await with { database throws(AccountStoreError) in
      try await database.snapshot { connection in
        let keys = try await connection.openKeys(with: key)
        var holdings = AccountHoldings()
        // While the hashing key is being replaced, rows bear one hash or the other.
        for hash in keys.hashing.hashes(of: account) { holdings.add(try await connection.holdings(of: hash)) }
        holdings.add(try await connection.holdings(of: keys.id(of: account)))
        return holdings
      }
    }
  }
}

extension Connection {
  /// What there is under a hash. The ledger has no index by hashes: it is read as a whole.
  fileprivate func holdings(of hash: AccountHash) async throws -> AccountHoldings {
    var holdings = AccountHoldings()
    let counted = try await first(
      """
      SELECT EXISTS (SELECT FROM siwa.account WHERE hash = $1), (SELECT count(*) FROM siwa.token WHERE hash = $1),
        EXISTS (SELECT FROM siwa.relay WHERE hash = $1), (SELECT at FROM siwa.erasure_fence WHERE hash = $1),
        (SELECT count(*) FROM siwa.ledger WHERE hash = $1) + (SELECT count(*) FROM siwa.fence WHERE hash = $1)
          + (SELECT count(*) FROM siwa.erasure_fence WHERE hash = $1)
          + (SELECT count(*) FROM siwa.erasure_step WHERE hash = $1)
          + (SELECT count(*) FROM siwa.ended_authorization WHERE hash = $1)
          + (SELECT count(*) FROM siwa.own_revocation WHERE hash = $1) + (SELECT count(*) FROM siwa.guard WHERE hash = $1)
      """, hash.bytes
    ) { row throws(PostgreSQLError) in
      var holdings = AccountHoldings()
      holdings.isKept = try row.value(0)
      holdings.tokens = try row.count(1) ?? 0
      holdings.hasMailState = try row.value(2)
      holdings.erasedAt = try row.timeIfPresent(3)
      holdings.traces = try row.count(4) ?? 0
      return holdings
    }
    if let counted { holdings = counted }
    let events = try await query(
      "SELECT event_id FROM siwa.ledger WHERE hash = $1 UNION SELECT event_id FROM siwa.erasure_step WHERE hash = $1",
      hash.bytes, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in EventID(try row.value(0)) }
    holdings.events = Set(events.compactMap(\.self))
    holdings.left = try await query(
      """
      SELECT event_id, target, state FROM siwa.erasure_step
      WHERE hash = $1 AND state IN ('begun', 'failed', 'retained') ORDER BY number
      """, hash.bytes, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in
      guard let event = EventID(try row.value(0)) else { throw .unexpectedValue("a step of an erasure") }
      return AccountHoldings.Step(
        place: OpenErasure.Place(event: event, target: try row.value(1)), state: try row.choice(2))
    }
    return holdings
  }

  /// What bears the account's id, whatever its hash.
  fileprivate func holdings(of id: AccountID) async throws -> AccountHoldings {
    var holdings = AccountHoldings()
    let counted = try await first(
      """
      SELECT (SELECT count(*) FROM siwa.outbox WHERE account = $1),
        (SELECT count(*) FROM siwa.deletion WHERE account = $1)
          + (SELECT count(*) FROM siwa.transferred_account WHERE account = $1 OR former = $1),
        (SELECT count(*) FROM siwa.transfer_user WHERE account = $1)
      """, id.bytes
    ) { row throws(PostgreSQLError) in
      (waiting: try row.count(0) ?? 0, traces: try row.count(1) ?? 0, transfers: try row.count(2) ?? 0)
    }
    (holdings.waiting, holdings.traces, holdings.transfers) = counted ?? (0, 0, 0)
    let events = try await query(
      "SELECT event_id FROM siwa.deletion WHERE account = $1", id.bytes, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in EventID(try row.value(0)) }
    holdings.events = Set(events.compactMap(\.self))
    return holdings
  }
}
