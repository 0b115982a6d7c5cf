import AccountEvents
import SQLite

/// Answers mailers.
final class SQLiteRelayReader {
  private let reading: Statement

  /// A reader by a connection that is open.
  init(_ database: Database) throws(SQLiteError) {
    reading = try database.prepare(
      """
      SELECT mail.status, mail.since, mail.is_private, mail.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM (SELECT 1) LEFT JOIN mail ON mail.hash = ?1 LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure_fence AS erasure ON erasure.hash = ?1
      """)
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

extension SQLiteReader {
  /// What is known of mail to each.
  func relayStates(of accounts: [Account]) throws(AccountStoreError) -> [RelayKnowledge] {
    try accounts.map { account throws(AccountStoreError) in
      let (hash, facts) = try AccountStoreError.translating { () throws(SQLiteError) in try relayFacts(of: account) }
      return try facts.knowledge(of: hash, with: keys)
    }
  }

  /// What there is of mail to an account, and under which hash: what has not moved to the newest one stands under the one
  /// before, all of it.
  private func relayFacts(of account: Account) throws(SQLiteError) -> (hash: AccountHash, facts: RelayFacts) {
    guard keys.state.isMoving else {
      let hash = keys.hash(of: account)
      return (hash, try relays.facts(of: hash))
    }
    let move = keys.hashing.move(of: account)
    let facts = try relays.facts(of: move.to)
    return facts.isEmpty ? (move.from, try relays.facts(of: move.from)) : (move.to, facts)
  }
}
