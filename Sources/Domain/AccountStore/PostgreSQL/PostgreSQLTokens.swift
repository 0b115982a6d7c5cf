import AccountEvents
import PostgreSQL

/// The tokens of accounts, and the authorizations that were ended.
enum PostgreSQLTokens {
  private struct Found {
    let hash: AccountHash
    let token: SealedToken
    let key: AccountFacts.WrappedKey
  }

  /// Reads and opens all tokens of these accounts, oldest first of each.
  static func read(
    of hashes: [AccountHash], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [StoredToken] {
    var batch = Batch()
    batch.append(
      """
      SELECT kind, client, issued_at, value, hash, data_key, master_key_id FROM siwa.token JOIN siwa.account USING (hash)
      WHERE hash = ANY ($1) ORDER BY hash, issued_at, number
      """, PostgreSQLArray(hashes.map(\.bytes)))
    var rows: [Found] = []
    try await connection.run(batch, holding: keys) { _, row throws(PostgreSQLError) in
      rows.append(
        Found(
          hash: try row.hash(4), token: try SealedToken(reading: row),
          key: AccountFacts.WrappedKey(bytes: try row.value(5), masterKeyID: try row.value(6))))
    }
    return try rows.map { row in try row.token.opened(of: row.hash, with: keys.dataKey(of: row.hash, row.key)) }
  }

  /// What was revoked by ourselves, and not given anew.
  static func ownRevocations(
    of account: Account, _ keys: StoreKeys, with connection: Connection
  ) async throws -> [OwnRevocation] {
    var batch = Batch()
    readOwnRevocations(of: keys.hash(of: account), in: &batch)
    var revocations: [OwnRevocation] = []
    try await connection.run(batch, holding: keys) { _, row throws(PostgreSQLError) in
      revocations.append(try OwnRevocation(reading: row))
    }
    return revocations
  }

  /// Adds an execution that reads them.
  static func readOwnRevocations(of hash: AccountHash, in batch: inout Batch) {
    batch.append(
      """
      SELECT client, at, is_proven FROM siwa.own_revocation AS own
      WHERE hash = $1
        AND NOT EXISTS (SELECT FROM siwa.account WHERE hash = $1 AND signed_in_at > own.at)
        AND NOT EXISTS (SELECT FROM siwa.erasure_fence WHERE hash = $1 AND signed_in_at > own.at)
      ORDER BY client COLLATE "C"
      """, hash.bytes)
  }
}

extension OwnRevocation {
  /// Reads one from a row.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let client = ClientID(try row.value(0)) else { throw .unexpectedValue("a revocation's client") }
    self.init(of: client, at: try row.time(1), isProven: try row.value(2))
  }
}
