import AccountEvents
import SQLite

/// What is known of mail to accounts.
final class SQLiteRelays {
  /// A row, before its address is opened.
  private struct Found {
    var state: (status: RelayState.Status, since: Timestamp, isPrivate: Bool, address: [UInt8]?)?
    var signedInAt: Timestamp?
    var erasedAt: Timestamp?
  }

  private let accounts: SQLiteAccounts
  private let reading: Statement
  private let writing: Statement
  private let removal: Statement

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
  }

  /// Writes down what Apple said.
  func set(_ state: RelayState, of account: Account, _ hash: AccountHash) throws(AccountStoreError) {
    let key = try accounts.makeDataKey(of: account, hash)
    var address: [UInt8]?
    if let text = state.address?.text { address = try key.seal(Array(text.utf8), for: .address(of: hash)) }
    try AccountStoreError.translating { () throws(SQLiteError) in
      try writing.run(
        hash.bytes, state.status.rawValue, state.since.milliseconds, state.isPrivate ? 1 as Int64 : 0, address)
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
          found.state = (
            try row.choice(0), try row.time(1), try row.value(2, as: Int64.self) == 1, try row.value(3)
          )
        }
        return found
      }
    }
    if let state = found?.state {
      return .known(
        RelayState(
          status: state.status, address: try open(state.address, of: hash), isPrivate: state.isPrivate,
          since: state.since))
    }
    guard let found, let erasedAt = found.erasedAt else { return .unknown }
    if let signedInAt = found.signedInAt, signedInAt > erasedAt { return .unknown }
    return .erased(since: erasedAt)
  }

  private func open(_ address: [UInt8]?, of hash: AccountHash) throws(AccountStoreError) -> RelayAddress? {
    guard let address else { return nil }
    // The schema sees to the row of the account.
    guard let key = try accounts.dataKey(of: hash) else {
      throw AccountStoreError(.damaged, "an address without its account")
    }
    let text = try key.open(address, from: .address(of: hash))
    guard let address = String(validating: text, as: UTF8.self).flatMap(RelayAddress.init) else {
      throw AccountStoreError(.damaged, "an address: not of the form in which it was written")
    }
    return address
  }
}
