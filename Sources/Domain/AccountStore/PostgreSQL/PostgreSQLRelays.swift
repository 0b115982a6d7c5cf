import AccountEvents
import PostgreSQL

/// What is known of mail to accounts.
enum PostgreSQLRelays {
  /// What is known of mail to each, in one statement.
  static func knowledge(
    of hashes: [AccountHash], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [RelayKnowledge] {
    var batch = Batch.byKey
    batch.append(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM unnest($1) WITH ORDINALITY AS asked (hash, position) LEFT JOIN siwa.relay ON relay.hash = asked.hash
        LEFT JOIN siwa.account ON account.hash = asked.hash LEFT JOIN siwa.erasure ON erasure.hash = asked.hash
      ORDER BY asked.position
      """, PostgreSQLArray(hashes.map(\.bytes)))
    var rows: [RelayFacts] = []
    try await connection.run(batch) { execution, row throws(PostgreSQLError) in
      guard execution == 1 else { return }
      rows.append(RelayFacts(relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4)))
    }
    return try zip(hashes, rows).map { hash, facts in try facts.knowledge(of: hash, with: keys) }
  }
}
