import AccountEvents
import SQLite

/// What is known of mail to accounts.
final class SQLiteRelays {
  /// A row, before its address is opened.
  private struct Found {
    var relay: SealedRelay?
    var signedInAt: Timestamp?
    var erasedAt: Timestamp?
  }

  private let accounts: SQLiteAccounts
  private let reading: Statement
  private let writing: Statement
  private let removal: Statement
  private let sinceReading: Statement

  init(_ database: Database, _ accounts: SQLiteAccounts) throws(SQLiteError) {
    self.accounts = accounts
    reading = try database.prepare(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address, account.signed_in_at, erasure.at
      FROM (SELECT 1) LEFT JOIN relay ON relay.hash = ?1 LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure ON erasure.hash = ?1
      """)
    writing = try database.prepare(
      """
      INSERT INTO relay (hash, status, since, is_private, address) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET status = excluded.status, since = excluded.since, is_private = excluded.is_private,
        address = excluded.address
      """)
    removal = try database.prepare("DELETE FROM relay WHERE hash = ?")
    sinceReading = try database.prepare("SELECT since FROM relay WHERE hash = ?")
  }

  /// Since when the state is as it is; nil where none is known.
  func since(of hash: AccountHash) throws(SQLiteError) -> Timestamp? {
    try sinceReading.first(hash.bytes) { row throws(SQLiteError) in try row.time(0) }
  }

  /// Writes down what Apple said.
  func set(_ state: RelayState, of account: Account, _ hash: AccountHash) throws(AccountStoreError) {
    let key = try accounts.makeDataKey(of: account, hash)
    let row = try SealedRelay(state, of: hash, with: key)
    try AccountStoreError.translating { () throws(SQLiteError) in
      try writing.run(
        hash.bytes, row.status.rawValue, row.since.milliseconds, row.isPrivate ? 1 as Int64 : 0, row.address)
    }
  }

  /// Forgets what Apple said.
  func remove(_ hash: AccountHash) throws(SQLiteError) { try removal.run(hash.bytes) }

  /// What is known of mail to the account.
  func knowledge(of hash: AccountHash) throws(AccountStoreError) -> RelayKnowledge {
    let found = try AccountStoreError.translating { () throws(SQLiteError) in
      try reading.first(hash.bytes) { row throws(SQLiteError) in
        var found = Found(signedInAt: try row.timeIfPresent(4), erasedAt: try row.timeIfPresent(5))
        if try row.value(0, as: String?.self) != nil {
          found.relay = SealedRelay(
            status: try row.choice(0), since: try row.time(1), isPrivate: try row.value(2, as: Int64.self) == 1,
            address: try row.value(3))
        }
        return found
      }
    }
    let state = try found?.relay?.opened(of: hash) { () throws(AccountStoreError) in try accounts.dataKey(of: hash) }
    return RelayKnowledge(state, signedInAt: found?.signedInAt, erasedAt: found?.erasedAt)
  }
}
