import AccountEvents
import Cryptography
import PostgreSQL

/// A sign-in, to be recorded.
struct PostgreSQLSignIn {
  let account: Account
  let hash: AccountHash
  let time: Timestamp
  let tokens: [NewToken]

  /// Records it in a transaction that does nothing else, and returns the tokens that are not kept.
  func record(_ keys: StoreKeys, with connection: Connection) async throws -> [NewToken] {
    var reading = Batch.byKey
    reading.lock([hash])
    reading.append("SELECT data_key, master_key_id FROM siwa.account WHERE hash = $1", hash.bytes)
    reading.append("SELECT at FROM siwa.erasure WHERE hash = $1", hash.bytes)
    reading.append("SELECT client, issued_up_to FROM siwa.ended_authorization WHERE hash = $1", hash.bytes)
    var wrapped: (key: [UInt8], masterKeyID: String)?
    var ended = EndedAuthorizations()
    try await connection.run(reading) { execution, row throws(PostgreSQLError) in
      switch execution {
      case 3: wrapped = (try row.value(0), try row.value(1))
      case 4: ended.erasedAt = try row.time(0)
      case 5: ended.endedAt[try row.value(0)] = try row.time(1)
      default: break
      }
    }
    let over = ended.over(tokens, at: time)
    if ended.isErased(at: time) { return over }
    var writing = Batch()
    let key: AES256GCM
    if let wrapped {
      key = try keys.dataKey(of: hash, wrapped.key, masterKeyID: wrapped.masterKeyID)
    } else {
      let made = try keys.makeDataKey(of: account, hash)
      key = made.cipher
      PostgreSQLWrites.insert([made.row], in: &writing)
    }
    writing.append(
      "UPDATE siwa.account SET signed_in_at = greatest(signed_in_at, $2) WHERE hash = $1", hash.bytes,
      time.milliseconds)
    for token in tokens where !over.contains(token) {
      writing.append(
        """
        INSERT INTO siwa.token (hash, fingerprint, kind, client, issued_at, value) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (hash, client, kind, fingerprint) DO UPDATE
          SET issued_at = greatest(token.issued_at, excluded.issued_at)
        """, hash.bytes, keys.fingerprint(of: token.value), token.kind.rawValue, token.client.text,
        time.milliseconds, try SealedToken.seal(token, of: hash, with: key))
    }
    _ = try await connection.run(writing)
    return over
  }
}
