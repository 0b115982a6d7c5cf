import AccountEvents
import PostgreSQL

/// What is known of mail to accounts.
enum PostgreSQLRelays {
  /// What is known of mail to each, as of one moment. What has not moved to the newest hash stands under the one before, all
  /// of it.
  static func knowledge(
    of accounts: [Account], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [RelayKnowledge] {
    guard keys.state.isMoving else {
      return try await knowledge(of: accounts.map { keys.hash(of: $0) }, keys, with: connection)
    }
    let moves = accounts.map { keys.hashing.move(of: $0) }
    let facts = try await facts(of: moves.flatMap { [$0.to, $0.from] }, keys, with: connection)
    return try moves.enumerated().map { index, move in
      let (newest, former) = (facts[2 * index], facts[2 * index + 1])
      return newest.isEmpty
        ? try former.knowledge(of: move.from, with: keys) : try newest.knowledge(of: move.to, with: keys)
    }
  }

  /// What is known of mail to each, as their rows stand.
  static func knowledge(
    of hashes: [AccountHash], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [RelayKnowledge] {
    try zip(hashes, await facts(of: hashes, keys, with: connection)).map { hash, facts in
      try facts.knowledge(of: hash, with: keys)
    }
  }

  /// In one statement.
  private static func facts(
    of hashes: [AccountHash], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [RelayFacts] {
    var batch = Batch.byKey
    batch.append(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM unnest($1) WITH ORDINALITY AS asked (hash, position) LEFT JOIN siwa.relay ON relay.hash = asked.hash
        LEFT JOIN siwa.account ON account.hash = asked.hash
        LEFT JOIN siwa.erasure_fence AS erasure ON erasure.hash = asked.hash
      ORDER BY asked.position
      """, PostgreSQLArray(hashes.map(\.bytes)))
    var rows: [RelayFacts] = []
    try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
      guard execution == 1 else { return }
      rows.append(RelayFacts(relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4)))
    }
    // A damaged index may have two rows for one hash: everybody behind it would be told of somebody else.
    guard rows.count == hashes.count else { throw AccountStoreError(.damaged, "another number of states") }
    return rows
  }
}
