import AccountEvents
import Cryptography
import SQLite

/// The rows of accounts, their tokens, and what erasures have left of them.
final class SQLiteAccounts {
  private let keys: StoreKeys
  private let key: Statement
  private let insertion: Statement
  private let signIn: Statement
  private let tokenInsertion: Statement
  private let tokenReading: Statement
  private let tokenRemoval: Statement
  private let ended: Statement
  private let endedReading: Statement
  private let ownRevocation: Statement
  private let ownRevocationReading: Statement
  private let removal: Statement
  private let fence: Statement
  private let fenceReading: Statement
  private let signInReading: Statement
  private let rowReading: Statement

  init(_ database: Database, _ keys: StoreKeys) throws(SQLiteError) {
    self.keys = keys
    key = try database.prepare("SELECT data_key, master_key_id FROM account WHERE hash = ?")
    insertion = try database.prepare(
      "INSERT INTO account (hash, team, subject, master_key_id, data_key) VALUES (?, ?, ?, ?, ?)")
    signIn = try database.prepare(
      "UPDATE account SET signed_in_at = max(coalesce(signed_in_at, ?2), ?2) WHERE hash = ?1")
    tokenInsertion = try database.prepare(
      """
      INSERT INTO token (hash, fingerprint, kind, client, issued_at, value) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET issued_at = max(issued_at, excluded.issued_at)
      """)
    tokenReading = try database.prepare(
      "SELECT kind, client, issued_at, value FROM token WHERE hash = ? AND issued_at > ? ORDER BY issued_at, number")
    tokenRemoval = try database.prepare(
      "DELETE FROM token WHERE hash = ?1 AND issued_at <= ?3 AND (?2 = '' OR client = ?2)")
    ended = try database.prepare(
      """
      INSERT INTO ended_authorization (hash, client, issued_up_to) VALUES (?, ?, ?)
      ON CONFLICT DO UPDATE SET issued_up_to = max(issued_up_to, excluded.issued_up_to)
      """)
    endedReading = try database.prepare("SELECT client, issued_up_to FROM ended_authorization WHERE hash = ?")
    ownRevocation = try database.prepare(
      """
      INSERT INTO own_revocation (hash, client, at, is_proven) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET at = excluded.at, is_proven = excluded.is_proven
      """)
    ownRevocationReading = try database.prepare(
      """
      SELECT client, at, is_proven FROM own_revocation AS own
      WHERE hash = ?1
        AND NOT EXISTS (SELECT 1 FROM account WHERE hash = ?1 AND signed_in_at > own.at)
        AND NOT EXISTS (SELECT 1 FROM erasure WHERE hash = ?1 AND signed_in_at > own.at)
      ORDER BY client
      """)
    removal = try database.prepare("DELETE FROM account WHERE hash = ?")
    rowReading = try database.prepare(
      "SELECT hash, team, subject, data_key, master_key_id FROM account WHERE hash = ?")
    fence = try database.prepare(
      """
      INSERT INTO erasure (hash, at, is_final, signed_in_at) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET at = excluded.at, is_final = excluded.is_final, signed_in_at = excluded.signed_in_at
      """)
    signInReading = try database.prepare("SELECT signed_in_at FROM account WHERE hash = ?")
    fenceReading = try database.prepare("SELECT at, is_final, signed_in_at FROM erasure WHERE hash = ?")
  }

  /// The account's data key; nil where nothing is kept of it.
  func dataKey(of hash: AccountHash) throws(AccountStoreError) -> AES256GCM? {
    let wrapped = try AccountStoreError.translating { () throws(SQLiteError) in
      try key.first(hash.bytes) { row throws(SQLiteError) in
        (key: try row.value(0, as: [UInt8].self), master: try row.value(1, as: String.self))
      }
    }
    guard let wrapped else { return nil }
    return try keys.dataKey(of: hash, wrapped.key, masterKeyID: wrapped.master)
  }

  /// The account's data key, with a row for the account where there was none.
  func makeDataKey(of account: Account, _ hash: AccountHash) throws(AccountStoreError) -> AES256GCM {
    if let key = try dataKey(of: hash) { return key }
    let (cipher, row) = try keys.makeDataKey(of: account, hash)
    try AccountStoreError.translating { () throws(SQLiteError) in
      try insertion.run(hash.bytes, row.team, row.subject, row.masterKeyID, row.dataKey)
    }
    return cipher
  }

  /// Adds a sign-in with its tokens, and returns those that are not kept.
  func recordSignIn(
    _ account: Account, _ hash: AccountHash, at time: Timestamp, _ tokens: [NewToken]
  ) throws(AccountStoreError) -> [NewToken] {
    let ended = try AccountStoreError.translating { () throws(SQLiteError) in try endedAuthorizations(of: hash) }
    let over = ended.over(tokens, at: time)
    if ended.isErased(at: time) { return over }
    let key = try makeDataKey(of: account, hash)
    try AccountStoreError.translating { () throws(SQLiteError) in
      try signIn.run(hash.bytes, time.milliseconds)
    }
    for token in tokens where !over.contains(token) {
      try insert(StoredToken(token, issuedAt: time), of: hash, with: key)
    }
    return over
  }

  private func insert(
    _ token: StoredToken, of hash: AccountHash, with key: AES256GCM
  ) throws(AccountStoreError) {
    let (issuedAt, token) = (token.issuedAt, token.token)
    let value = try SealedToken.seal(token, of: hash, with: key)
    try AccountStoreError.translating { () throws(SQLiteError) in
      try tokenInsertion.run(
        hash.bytes, keys.fingerprint(of: token.value), token.kind.rawValue, token.client.text, issuedAt.milliseconds,
        value)
    }
  }

  private func endedAuthorizations(of hash: AccountHash) throws(SQLiteError) -> EndedAuthorizations {
    var found = EndedAuthorizations()
    found.erasedAt = try fenceReading.first(hash.bytes) { row throws(SQLiteError) in try row.time(0) }
    try endedReading.forEach(hash.bytes) { row throws(SQLiteError) in
      found.endedAt[try row.value(0)] = try row.time(1)
    }
    return found
  }

  /// The account's tokens, oldest first: those of sign-ins after that moment; nil is all.
  func tokens(of hash: AccountHash, after time: Timestamp? = nil) throws(AccountStoreError) -> [StoredToken] {
    guard let key = try dataKey(of: hash) else { return [] }
    var rows: [SealedToken] = []
    try AccountStoreError.translating { () throws(SQLiteError) in
      try tokenReading.forEach(hash.bytes, time?.milliseconds ?? .min) { row throws(SQLiteError) in
        guard let client = ClientID(try row.value(1)) else { throw .malformed("a token's client") }
        rows.append(
          SealedToken(kind: try row.choice(0), client: client, issuedAt: try row.time(2), value: try row.value(3)))
      }
    }
    var tokens: [StoredToken] = []
    for row in rows { tokens.append(try row.opened(of: hash, with: key)) }
    return tokens
  }

  /// Deletes tokens: those of some apps, or of all.
  func endTokens(of hash: AccountHash, issuedUpTo time: Timestamp, _ clients: Set<ClientID>?) throws(SQLiteError) {
    for app in clients.map({ $0.map(\.text) }) ?? [EndedAuthorizations.everyApp] {
      try tokenRemoval.run(hash.bytes, app, time.milliseconds)
      try ended.run(hash.bytes, app, time.milliseconds)
    }
  }

  /// Writes down that an authorization was revoked by ourselves.
  func note(_ revocation: OwnRevocation, _ hash: AccountHash) throws(SQLiteError) {
    try ownRevocation.run(
      hash.bytes, revocation.client.text, revocation.time.milliseconds, revocation.isProven ? 1 as Int64 : 0)
  }

  /// What was revoked by ourselves, and not given anew.
  func ownRevocations(of hash: AccountHash) throws(SQLiteError) -> [OwnRevocation] {
    var revocations: [OwnRevocation] = []
    try ownRevocationReading.forEach(hash.bytes) { row throws(SQLiteError) in
      guard let client = ClientID(try row.value(0)) else { throw .malformed("a revocation's client") }
      revocations.append(
        OwnRevocation(of: client, at: try row.time(1), isProven: try row.value(2, as: Int64.self) == 1))
    }
    return revocations
  }

  /// Whose row it is that stands under the hash; nil where there is none.
  func name(of hash: AccountHash) throws(AccountStoreError) -> Account? {
    let row = try AccountStoreError.translating { () throws(SQLiteError) in
      try rowReading.first(hash.bytes) { row throws(SQLiteError) in try SealedAccount(reading: row) }
    }
    return try row?.open(with: keys).account
  }

  /// Deletes the account's row and all that belongs to it.
  func remove(_ hash: AccountHash) throws(SQLiteError) { try removal.run(hash.bytes) }

  /// Makes the account's row anew, under a new data key, with what an erasure has left of sign-ins.
  func begin(_ account: Account, _ hash: AccountHash, with spared: SparedAccount) throws(AccountStoreError) {
    let key = try makeDataKey(of: account, hash)
    if let time = spared.signedInAt {
      try AccountStoreError.translating { () throws(SQLiteError) in try signIn.run(hash.bytes, time.milliseconds) }
    }
    for token in spared.tokens { try insert(token, of: hash, with: key) }
  }

  /// Leaves the fence of an erasure, and returns what the account's erasures come to, and its last sign-in.
  @discardableResult
  func fence(
    _ hash: AccountHash, _ erasure: ErasureFence
  ) throws(SQLiteError) -> (fence: ErasureFence, signedInAt: Timestamp?) {
    // One row at most; it may have no sign-in.
    let signIn = try signInReading.first(hash.bytes) { row throws(SQLiteError) in try row.timeIfPresent(0) } ?? nil
    let known = try fenceReading.first(hash.bytes) { row throws(SQLiteError) in
      (
        fence: ErasureFence(at: try row.time(0), isFinal: try row.value(1, as: Int64.self) == 1),
        signedInAt: try row.timeIfPresent(2)
      )
    }
    let signedInAt = [known?.signedInAt, signIn].compactMap(\.self).max()
    let merged = known?.fence.merged(with: erasure, signedInAt: signedInAt) ?? erasure
    try fence.run(hash.bytes, merged.at.milliseconds, merged.isFinal ? 1 as Int64 : 0, signedInAt?.milliseconds)
    return (merged, signedInAt)
  }
}
