import AccountEvents
import PostgreSQL

extension PostgreSQLStoreDatabase {
  private struct Row {
    let hash: AccountHash
    let dataKey: [UInt8]
    let masterKeyID: String
  }

  /// Wraps with the master key whatever one before it has wrapped.
  func rotateKey(
    to master: MasterKey, _ progress: (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> KeyRotation {
    // Until those are done that wrap with the key before, which takes them moments; who comes later waits.
    try await lockingKeys { connection in
      _ = try await connection.openKeys(with: master)
      for key in try await connection.readWrappedKeys().keys where key.masterKeyID != master.id {
        let anew = try key.rewrapped(with: master)
        try await connection.execute(
          "UPDATE siwa.hash_key SET master_key_id = $1, key = $2 WHERE number = $3", anew.masterKeyID, anew.key,
          Int64(anew.number))
      }
    }
    let total = try await read { connection in try await connection.count(withoutKey: master) }
    var rotation = KeyRotation()
    var last: [UInt8] = []
    while true {
      let from = last
      let hashes = try await write { connection in
        let rows = try await connection.query(
          """
          SELECT hash, data_key, master_key_id FROM siwa.account WHERE master_key_id <> $1 AND hash > $2
          ORDER BY hash LIMIT $3 FOR NO KEY UPDATE
          """, master.id, from, KeyRotation.page, limit: Self.limit
        ) { row throws(PostgreSQLError) in
          Row(hash: try row.hash(0), dataKey: try row.value(1), masterKeyID: try row.value(2))
        }
        if rows.isEmpty { return rows.map(\.hash) }
        var keys: [[UInt8]] = []
        for row in rows {
          keys.append(try master.rewrap(row.dataKey, at: .dataKey(of: row.hash), ofKey: row.masterKeyID))
        }
        try await connection.execute(
          """
          UPDATE siwa.account SET data_key = anew.key, master_key_id = $3
          FROM unnest($1, $2) AS anew (hash, key) WHERE account.hash = anew.hash
          """, PostgreSQLArray(rows.map(\.hash.bytes)), PostgreSQLArray(keys), master.id)
        return rows.map(\.hash)
      }
      guard let end = hashes.last else { break }
      last = end.bytes
      rotation.accounts += hashes.count
      progress(StoreProgress(.wrapping, done: rotation.accounts, total: max(total, rotation.accounts)))
    }
    try await rotateOutbox(to: master)
    try await rotateTransferPlans(to: master)
    rotation.left = try await read { connection in try await connection.count(withoutKey: master) }
    return rotation
  }

  /// What waits to be published is little, unless Kafka is away: page by page, so that nobody who publishes waits for long.
  private func rotateOutbox(to master: MasterKey) async throws(AccountStoreError) {
    // What is written meanwhile by a program that still wraps with the former key counts as left.
    let end = try await read { connection in
      try await connection.first("SELECT max(number) FROM siwa.outbox") { row throws(PostgreSQLError) in
        try row.value(0, as: Int64?.self)
      }
    }
    var last: Int64? = 0
    while let from = last, let end = end ?? nil {
      last = try await write { connection in
        let rows = try await connection.query(
          """
          SELECT event_id, account, written_at, master_key_id, record, number FROM siwa.outbox
          WHERE master_key_id <> $1 AND number > $2 AND number <= $3 ORDER BY number LIMIT $4 FOR UPDATE
          """, master.id, from, end, KeyRotation.page, limit: Self.limit
        ) { row throws(PostgreSQLError) in
          (number: try row.value(5, as: Int64.self), sealed: try SealedOutboxRecord(reading: row))
        }
        var records: [[UInt8]] = []
        for (_, row) in rows {
          records.append(try master.rewrap(row.record, at: .outbox(row.id), ofKey: row.masterKeyID))
        }
        try await connection.execute(
          """
          UPDATE siwa.outbox SET record = anew.record, master_key_id = $3
          FROM unnest($1, $2) AS anew (number, record) WHERE outbox.number = anew.number
          """, PostgreSQLArray(rows.map(\.number)), PostgreSQLArray(records), master.id)
        return rows.last?.number
      }
    }
  }

  /// There are few plans; their users' rows stay as they are.
  private func rotateTransferPlans(to master: MasterKey) async throws(AccountStoreError) {
    // Nobody else gets at the plans while this waits for them.
    let isNeeded = try await read { connection in
      try await connection.transferPlans().contains { $0.masterKeyID != master.id }
    }
    guard isNeeded else { return }
    try await write { connection in
      try await connection.execute(PostgreSQLTransfers.lockOfPlans)
      for row in try await connection.transferPlans() where row.masterKeyID != master.id {
        try await connection.execute(
          "UPDATE siwa.transfer_plan SET data_key = $1, master_key_id = $2 WHERE number = $3",
          try master.rewrap(row.dataKey, at: .transferPlan(row.plan), ofKey: row.masterKeyID), master.id, row.number)
      }
    }
  }
}

extension Connection {
  /// How many accounts, waiting events and plans another master key has wrapped.
  fileprivate func count(withoutKey master: MasterKey) async throws -> Int {
    let count: Int64? = try await first(
      """
      SELECT (SELECT count(*) FROM siwa.account WHERE master_key_id <> $1)
        + (SELECT count(*) FROM siwa.outbox WHERE master_key_id <> $1)
        + (SELECT count(*) FROM siwa.transfer_plan WHERE master_key_id <> $1 AND length(data_key) > 0)
      """, master.id
    ) { row throws(PostgreSQLError) in try row.value(0) }
    return Int(clamping: count ?? 0)
  }
}
