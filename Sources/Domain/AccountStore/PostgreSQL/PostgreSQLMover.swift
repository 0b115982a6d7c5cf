import AccountEvents
import EventLoop
import PostgreSQL

/// Moves all that stands under accounts' hashes to the hashes under the next key. Rows of the ledger and of erasures, which
/// nobody looks for by the hash, are moved by the rotation alone.
///
/// The row of `guard` goes first: whoever deletes the one of the former hash moves all the rest. Every account of which
/// there is anything has one.
@Loop
enum PostgreSQLMover {
  private struct TokenRow {
    let hash: [UInt8]
    let number: Int64
    let token: SealedToken
    let fingerprint: [UInt8]
  }

  /// What an account has that is sealed for its hash.
  private struct Sealed {
    var accounts: [SealedAccount] = []
    var tokens: [TokenRow] = []
    var relays: [(hash: [UInt8], address: [UInt8]?)] = []
  }

  /// Moves accounts within a transaction that has just begun, and returns how many; what has moved already is left alone.
  static func move(_ moves: [HashMove], _ keys: StoreKeys, _ connection: Connection) async throws -> Int {
    let destinations = Dictionary(moves.map { ($0.from.bytes, $0.to) }) { first, _ in first }
    var looking = Batch.locked
    looking.append("SELECT hash FROM siwa.guard WHERE hash = ANY ($1)", PostgreSQLArray(moves.map(\.from.bytes)))
    let found = looking.count - 1
    var former: [[UInt8]] = []
    try await connection.run(locked: looking, keys) { execution, row throws(PostgreSQLError) in
      if execution == found { former.append(try row.value(0)) }
    }
    if former.isEmpty { return 0 }
    let (moved, sealed) = try await take(former, destinations, keys, connection)
    if moved.isEmpty { return 0 }
    _ = try await connection.run(try writing(moved, sealed, destinations, keys))
    return moved.count
  }

  /// Takes the accounts that nobody else has moved meanwhile, with what has to be sealed anew.
  private static func take(
    _ former: [[UInt8]], _ destinations: [[UInt8]: AccountHash], _ keys: StoreKeys, _ connection: Connection
  ) async throws -> (moved: [[UInt8]], sealed: Sealed) {
    var taking = Batch()
    taking.lock(former.compactMap { destinations[$0] }, keys)
    let all = PostgreSQLArray(former)
    taking.append("DELETE FROM siwa.guard WHERE hash = ANY ($1) RETURNING hash", all)
    // Another master key may be wrapping them anew.
    taking.append(
      """
      SELECT hash, team, subject, data_key, master_key_id, signed_in_at FROM siwa.account WHERE hash = ANY ($1)
      ORDER BY hash FOR UPDATE
      """, all)
    taking.append(
      "SELECT kind, client, issued_at, value, hash, number, fingerprint FROM siwa.token WHERE hash = ANY ($1)", all)
    taking.append("SELECT hash, address FROM siwa.relay WHERE hash = ANY ($1)", all)
    var (moved, sealed) = ([[UInt8]](), Sealed())
    let first = taking.count - 4
    try await connection.run(taking) { execution, row throws(PostgreSQLError) in
      switch execution - first {
      case 0: moved.append(try row.value(0))
      case 1:
        sealed.accounts.append(
          SealedAccount(
            hash: try row.hash(0), team: try row.value(1), subject: try row.value(2),
            key: AccountFacts.WrappedKey(bytes: try row.value(3), masterKeyID: try row.value(4)),
            signedInAt: try row.timeIfPresent(5)))
      case 2:
        sealed.tokens.append(
          TokenRow(
            hash: try row.value(4), number: try row.value(5), token: try SealedToken(reading: row),
            fingerprint: try row.value(6)))
      case 3: sealed.relays.append((try row.value(0), try row.value(1)))
      default: break
      }
    }
    return (moved, sealed)
  }

  private static func writing(
    _ moved: [[UInt8]], _ sealed: Sealed, _ destinations: [[UInt8]: AccountHash], _ keys: StoreKeys
  ) throws(AccountStoreError) -> Batch {
    var batch = Batch()
    try writeSealed(sealed, destinations, keys, in: &batch)
    let (from, to) = (PostgreSQLArray(moved), PostgreSQLArray(moved.map { destinations[$0]?.bytes ?? $0 }))
    // There are few consumers, and no index by the hash alone.
    batch.append(
      """
      WITH RECURSIVE known (consumer) AS (
        SELECT min(consumer) FROM siwa.fence
        UNION ALL
        SELECT (SELECT min(fence.consumer) FROM siwa.fence WHERE fence.consumer > known.consumer) FROM known
        WHERE known.consumer IS NOT NULL
      )
      UPDATE siwa.fence SET hash = moved.destination FROM known, unnest($1, $2) AS moved (hash, destination)
      WHERE fence.consumer = known.consumer AND fence.hash = moved.hash
      """, from, to)
    batch.append(
      """
      UPDATE siwa.erasure_fence SET hash = moved.destination FROM unnest($1, $2) AS moved (hash, destination)
      WHERE erasure_fence.hash = moved.hash
      """, from, to)
    batch.append(
      """
      UPDATE siwa.ended_authorization SET hash = moved.destination FROM unnest($1, $2) AS moved (hash, destination)
      WHERE ended_authorization.hash = moved.hash
      """, from, to)
    batch.append(
      """
      UPDATE siwa.own_revocation SET hash = moved.destination FROM unnest($1, $2) AS moved (hash, destination)
      WHERE own_revocation.hash = moved.hash
      """, from, to)
    return batch
  }

  /// Adds the rows of accounts, and what belongs to them. New rows come first, as what belongs to none is refused.
  private static func writeSealed(
    _ sealed: Sealed, _ destinations: [[UInt8]: AccountHash], _ keys: StoreKeys, in batch: inout Batch
  ) throws(AccountStoreError) {
    var accounts: [[UInt8]: MovedAccount] = [:]
    for row in sealed.accounts {
      guard let destination = destinations[row.hash.bytes] else { continue }
      accounts[row.hash.bytes] = try MovedAccount(row, to: destination, keys)
    }
    if accounts.isEmpty { return }
    let rows = accounts.values.map(\.row)
    batch.append(
      """
      INSERT INTO siwa.account (hash, team, subject, master_key_id, data_key, signed_in_at)
      SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
      """, PostgreSQLArray(rows.map(\.hash.bytes)), PostgreSQLArray(rows.map(\.team)),
      PostgreSQLArray(rows.map(\.subject)), PostgreSQLArray(rows.map(\.key.masterKeyID)),
      PostgreSQLArray(rows.map(\.key.bytes)), PostgreSQLArray(rows.map(\.signedInAt?.milliseconds)))
    var tokens: [(number: Int64, hash: [UInt8], fingerprint: [UInt8], value: [UInt8])] = []
    for row in sealed.tokens {
      guard let account = accounts[row.hash] else { continue }
      tokens.append(
        (row.number, account.row.hash.bytes, keys.hashing.moved(row.fingerprint), try account.resealed(row.token)))
    }
    batch.append(
      """
      UPDATE siwa.token SET hash = moved.hash, fingerprint = moved.fingerprint, value = moved.value
      FROM unnest($1, $2, $3, $4) AS moved (number, hash, fingerprint, value) WHERE token.number = moved.number
      """, PostgreSQLArray(tokens.map(\.number)), PostgreSQLArray(tokens.map(\.hash)),
      PostgreSQLArray(tokens.map(\.fingerprint)), PostgreSQLArray(tokens.map(\.value)))
    var relays: [(from: [UInt8], to: [UInt8], address: [UInt8]?)] = []
    for row in sealed.relays {
      guard let account = accounts[row.hash] else { continue }
      relays.append(
        (
          row.hash, account.row.hash.bytes,
          try row.address.map { address throws(AccountStoreError) in try account.resealed(address: address) }
        ))
    }
    batch.append(
      """
      UPDATE siwa.relay SET hash = moved.destination, address = moved.address
      FROM unnest($1, $2, $3) AS moved (hash, destination, address) WHERE relay.hash = moved.hash
      """, PostgreSQLArray(relays.map(\.from)), PostgreSQLArray(relays.map(\.to)),
      PostgreSQLArray(relays.map(\.address)))
    batch.append("DELETE FROM siwa.account WHERE hash = ANY ($1)", PostgreSQLArray(Array(accounts.keys)))
  }
}
