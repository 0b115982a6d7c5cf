import AccountEvents
import SQLite

extension SQLiteStoreAdministration {
  func holdings(of account: Account) async throws(AccountStoreError) -> AccountHoldings {
    try await onThread { () throws(AccountStoreError) in
      let file = try SQLiteStoreFile(place, key)
      var holdings = AccountHoldings()
      // While the hashing key is being replaced, rows bear one hash or the other.
      for hash in file.keys.hashing.hashes(of: account) { holdings.add(try file.holdings(of: hash)) }
      holdings.add(try file.holdings(of: file.keys.id(of: account)))
      return holdings
    }
  }
}

extension SQLiteStoreFile {
  /// What there is under a hash, as of one moment. The ledger has no index by hashes: it is read as a whole.
  fileprivate func holdings(of hash: AccountHash) throws(AccountStoreError) -> AccountHoldings {
    try readRows { () throws(SQLiteError) in
      var holdings = AccountHoldings()
      try database.prepare(
        """
        SELECT EXISTS (SELECT 1 FROM account WHERE hash = ?1), (SELECT count(*) FROM token WHERE hash = ?1),
          EXISTS (SELECT 1 FROM mail WHERE hash = ?1), (SELECT at FROM erasure_fence WHERE hash = ?1),
          (SELECT count(*) FROM ledger WHERE hash = ?1)
            + (SELECT count(*) FROM (
                SELECT consumer, severity FROM event_fence WHERE hash = ?1
                UNION SELECT fence_consumer, fence_severity FROM mail WHERE hash = ?1 AND fence_consumer IS NOT NULL))
            + (SELECT count(*) FROM erasure_fence WHERE hash = ?1) + (SELECT count(*) FROM erasure_progress WHERE hash = ?1)
            + (SELECT count(*) FROM ended_authorization WHERE hash = ?1)
            + (SELECT count(*) FROM own_revocation WHERE hash = ?1)
        """
      ).forEach(hash.bytes) { row throws(SQLiteError) in
        holdings.isKept = try row.value(0, as: Int64.self) == 1
        holdings.tokens = try row.count(1) ?? 0
        holdings.hasMailState = try row.value(2, as: Int64.self) == 1
        holdings.erasedAt = try row.timeIfPresent(3)
        holdings.traces = try row.count(4) ?? 0
      }
      try database.prepare(
        "SELECT event_id FROM ledger WHERE hash = ?1 UNION SELECT event_id FROM erasure_progress WHERE hash = ?1"
      ).forEach(hash.bytes) { row throws(SQLiteError) in
        if let event = EventID(try row.value(0)) { holdings.events.insert(event) }
      }
      try database.prepare(
        """
        SELECT event_id, target, state FROM erasure_progress
        WHERE hash = ? AND state IN ('begun', 'failed', 'retained') ORDER BY number
        """
      ).forEach(hash.bytes) { row throws(SQLiteError) in
        guard let event = EventID(try row.value(0)) else { throw .malformed("a step of an erasure") }
        holdings.left.append(
          AccountHoldings.Step(
            place: OpenErasure.Place(event: event, target: try row.value(1)), state: try row.choice(2)))
      }
      return holdings
    }
  }

  /// What bears the account's id, whatever its hash.
  fileprivate func holdings(of id: AccountID) throws(AccountStoreError) -> AccountHoldings {
    try readRows { () throws(SQLiteError) in
      var holdings = AccountHoldings()
      try database.prepare(
        """
        SELECT (SELECT count(*) FROM outbox WHERE account = ?1),
          (SELECT count(*) FROM deletion WHERE account = ?1)
            + (SELECT count(*) FROM transferred_account WHERE account = ?1 OR former = ?1),
          (SELECT count(*) FROM transfer_user WHERE account = ?1)
        """
      ).forEach(id.bytes) { row throws(SQLiteError) in
        (holdings.waiting, holdings.traces) = (try row.count(0) ?? 0, try row.count(1) ?? 0)
        holdings.transfers = try row.count(2) ?? 0
      }
      try database.prepare("SELECT event_id FROM deletion WHERE account = ?").forEach(id.bytes) {
        row throws(SQLiteError) in if let event = EventID(try row.value(0)) { holdings.events.insert(event) }
      }
      return holdings
    }
  }
}
