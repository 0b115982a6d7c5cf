import AccountEvents
import PostgreSQL

/// What is known of mail to accounts.
enum PostgreSQLRelays {
  /// A row, before its address is opened.
  private struct Found {
    let relay: SealedRelay?
    let account: (signedInAt: Timestamp?, dataKey: [UInt8], masterKeyID: String)?
    let erasedAt: Timestamp?

    init(reading row: borrowing Row) throws(PostgreSQLError) {
      relay =
        try row.value(0, as: String?.self) == nil
        ? nil
        : SealedRelay(
          status: try row.choice(0), since: try row.time(1), isPrivate: try row.value(2), address: try row.value(3))
      account =
        try row.value(5, as: [UInt8]?.self) == nil
        ? nil : (try row.timeIfPresent(4), try row.value(5), try row.value(6))
      erasedAt = try row.timeIfPresent(7)
    }
  }

  /// What is known of mail to each, in one statement.
  static func knowledge(
    of hashes: [AccountHash], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [RelayKnowledge] {
    var batch = Batch.byKey
    batch.append(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        account.signed_in_at, account.data_key, account.master_key_id, erasure.at
      FROM unnest($1) WITH ORDINALITY AS asked (hash, position) LEFT JOIN siwa.relay ON relay.hash = asked.hash
        LEFT JOIN siwa.account ON account.hash = asked.hash LEFT JOIN siwa.erasure ON erasure.hash = asked.hash
      ORDER BY asked.position
      """, PostgreSQLArray(hashes.map(\.bytes)))
    var rows: [Found] = []
    try await connection.run(batch) { execution, row throws(PostgreSQLError) in
      if execution == 1 { rows.append(try Found(reading: row)) }
    }
    return try zip(hashes, rows).map { hash, found in
      let state = try found.relay?.opened(of: hash) { () throws(AccountStoreError) in
        guard let account = found.account else { return nil }
        return try keys.dataKey(of: hash, account.dataKey, masterKeyID: account.masterKeyID)
      }
      return RelayKnowledge(state, signedInAt: found.account?.signedInAt, erasedAt: found.erasedAt)
    }
  }
}
