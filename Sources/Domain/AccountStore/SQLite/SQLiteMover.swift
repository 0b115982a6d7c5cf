import AccountEvents
import SQLite

/// Moves all that stands under an account's hash to the hash under the next key, in the transaction of its caller. Rows of
/// the ledger and of erasures, which nobody looks for by the hash, are moved by the rotation alone.
final class SQLiteMover {
  private struct TokenRow {
    let number: Int64
    let token: SealedToken
    let fingerprint: [UInt8]
  }

  private let database: Database
  private let consumers: Statement
  private let fence: Statement
  /// Of the other tables that have rows of those who are erased.
  private let tables: [Statement]
  private let account: Statement
  private let insertion: Statement
  private let removal: Statement
  private let tokens: Statement
  private let token: Statement
  private let address: Statement
  private let relay: Statement

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    // There are few, and no index by the hash alone.
    consumers = try database.prepare(
      """
      WITH RECURSIVE known (consumer) AS (
        SELECT min(consumer) FROM event_fence
        UNION ALL
        SELECT (SELECT min(consumer) FROM event_fence WHERE consumer > known.consumer) FROM known WHERE consumer IS NOT NULL
      )
      SELECT consumer FROM known WHERE consumer IS NOT NULL
      """)
    fence = try database.prepare("UPDATE event_fence SET hash = ?3, generation = ?4 WHERE consumer = ?1 AND hash = ?2")
    tables = [
      try database.prepare("UPDATE erasure_fence SET hash = ?2, generation = ?3 WHERE hash = ?1"),
      try database.prepare("UPDATE ended_authorization SET hash = ?2, generation = ?3 WHERE hash = ?1"),
      try database.prepare("UPDATE own_revocation SET hash = ?2, generation = ?3 WHERE hash = ?1"),
    ]
    account = try database.prepare(
      "SELECT hash, team, subject, data_key, master_key_id, signed_in_at FROM account WHERE hash = ?")
    insertion = try database.prepare(
      """
      INSERT INTO account (hash, team, subject, master_key_id, data_key, signed_in_at, generation)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """)
    removal = try database.prepare("DELETE FROM account WHERE hash = ?")
    tokens = try database.prepare(
      "SELECT kind, client, issued_at, value, number, fingerprint FROM token WHERE hash = ?")
    token = try database.prepare("UPDATE token SET hash = ?2, fingerprint = ?3, value = ?4 WHERE number = ?1")
    address = try database.prepare("SELECT address FROM mail WHERE hash = ?")
    relay = try database.prepare("UPDATE mail SET hash = ?2, address = ?3 WHERE hash = ?1")
  }

  /// Moves accounts, and returns how many rows bore their former hashes; what has moved already is left alone.
  func move(_ moves: some Collection<HashMove>, _ keys: StoreKeys) throws(AccountStoreError) -> Int {
    let consumers = try consumersWithFences()
    var count = 0
    for move in moves {
      let (from, to, generation) = (move.from.bytes, move.to.bytes, keys.generation)
      try AccountStoreError.translating { () throws(SQLiteError) in
        for consumer in consumers {
          try fence.run(consumer, from, to, generation)
          count += database.changes
        }
        for table in tables {
          try table.run(from, to, generation)
          count += database.changes
        }
      }
      if try moveRow(move, keys) { count += 1 }
    }
    return count
  }

  private func consumersWithFences() throws(AccountStoreError) -> [String] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      var names: [String] = []
      try consumers.forEach { row throws(SQLiteError) in names.append(try row.value(0)) }
      return names
    }
  }

  /// Moves the account's own row, and what belongs to it; false where there is none. The new row comes first, as what
  /// belongs to none is refused.
  private func moveRow(_ move: HashMove, _ keys: StoreKeys) throws(AccountStoreError) -> Bool {
    let (from, to) = (move.from.bytes, move.to.bytes)
    let found = try AccountStoreError.translating { () throws(SQLiteError) in
      try account.first(from) { row throws(SQLiteError) in
        var account = try SealedAccount(reading: row)
        account.signedInAt = try row.timeIfPresent(5)
        return account
      }
    }
    guard let found else { return false }
    let (held, address) = try AccountStoreError.translating { () throws(SQLiteError) in
      var held: [TokenRow] = []
      try tokens.forEach(from) { row throws(SQLiteError) in
        held.append(
          TokenRow(number: try row.value(4), token: try SealedToken(reading: row), fingerprint: try row.value(5)))
      }
      let address: [UInt8]?? = try self.address.first(from) { row throws(SQLiteError) in try row.value(0) }
      return (held, address)
    }
    let moved = try MovedAccount(found, to: move.to, keys)
    let values = try held.map { row throws(AccountStoreError) in try moved.resealed(row.token) }
    let resealed = try (address ?? nil).map { value throws(AccountStoreError) in try moved.resealed(address: value) }
    try AccountStoreError.translating { () throws(SQLiteError) in
      try insertion.run(
        to, moved.row.team, moved.row.subject, moved.row.key.masterKeyID, moved.row.key.bytes,
        moved.row.signedInAt?.milliseconds, keys.generation)
      for (row, value) in zip(held, values) {
        try token.run(row.number, to, keys.hashing.moved(row.fingerprint), value)
      }
      if address != nil { try relay.run(from, to, resealed) }
      try removal.run(from)
    }
    return true
  }
}
