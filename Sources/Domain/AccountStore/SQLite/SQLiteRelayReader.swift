import AccountEvents
import SQLite

/// Answers mailers.
final class SQLiteRelayReader {
  let database: Database
  private let hashKeys: SQLiteStoreKeys
  private let reading: Statement

  /// A reader by a connection that is open; `hashKeys` are that one's.
  init(_ database: Database, _ hashKeys: SQLiteStoreKeys) throws(SQLiteError) {
    (self.database, self.hashKeys) = (database, hashKeys)
    reading = try database.prepare(
      """
      SELECT mail.status, mail.since, mail.is_private, mail.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM (SELECT 1) LEFT JOIN mail ON mail.hash = ?1 LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure_fence AS erasure ON erasure.hash = ?1
      """)
  }

  /// What is known of mail to each, all as of one moment.
  func knowledge(of accounts: [Account]) throws(AccountStoreError) -> [RelayKnowledge] {
    let found = try database.snapshot(translating: AccountStoreError.init(_:)) { () throws(AccountStoreError) in
      _ = try hashKeys.refresh()
      return try AccountStoreError.translating { () throws(SQLiteError) in
        var found: [(hash: AccountHash, facts: RelayFacts)] = []
        for account in accounts { found.append(try facts(of: account)) }
        return found
      }
    }
    var knowledge: [RelayKnowledge] = []
    for (hash, facts) in found { knowledge.append(try facts.knowledge(of: hash, with: hashKeys.value)) }
    return knowledge
  }

  /// What there is of mail to an account, and under which hash: what has not moved to the newest one stands under the one
  /// before, all of it.
  private func facts(of account: Account) throws(SQLiteError) -> (hash: AccountHash, facts: RelayFacts) {
    let keys = hashKeys.value
    guard keys.state.isMoving else {
      let hash = keys.hash(of: account)
      return (hash, try facts(of: hash))
    }
    let move = keys.hashing.move(of: account)
    let facts = try facts(of: move.to)
    return facts.isEmpty ? (move.from, try self.facts(of: move.from)) : (move.to, facts)
  }

  /// What there is of mail to one.
  func facts(of hash: AccountHash) throws(SQLiteError) -> RelayFacts {
    let facts = try reading.first(hash.bytes) { row throws(SQLiteError) in
      RelayFacts(relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
    }
    guard let facts else { throw .malformed("a row that is always there") }
    return facts
  }
}
