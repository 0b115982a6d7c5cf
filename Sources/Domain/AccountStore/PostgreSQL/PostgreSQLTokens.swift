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
    let rows = try await connection.query(
      """
      SELECT kind, client, issued_at, value, hash, data_key, master_key_id FROM siwa.token JOIN siwa.account USING (hash)
      WHERE hash = ANY ($1) ORDER BY hash, issued_at, number
      """, PostgreSQLArray(hashes.map(\.bytes)), limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in
      Found(
        hash: try row.hash(4), token: try SealedToken(reading: row),
        key: AccountFacts.WrappedKey(bytes: try row.value(5), masterKeyID: try row.value(6)))
    }
    return try rows.map { row in try row.token.opened(of: row.hash, with: keys.dataKey(of: row.hash, row.key)) }
  }

  /// What was revoked by ourselves, and not given anew.
  static func ownRevocations(of hash: AccountHash, with connection: Connection) async throws -> [OwnRevocation] {
    try await connection.query(
      """
      SELECT client, at, is_proven FROM siwa.own_revocation AS own
      WHERE hash = $1
        AND NOT EXISTS (SELECT FROM siwa.account WHERE hash = $1 AND signed_in_at > own.at)
        AND NOT EXISTS (SELECT FROM siwa.erasure WHERE hash = $1 AND signed_in_at > own.at)
      ORDER BY client COLLATE "C"
      """, hash.bytes, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in
      guard let client = ClientID(try row.value(0)) else { throw .unexpectedValue("a revocation's client") }
      return OwnRevocation(of: client, at: try row.time(1), isProven: try row.value(2))
    }
  }
}
