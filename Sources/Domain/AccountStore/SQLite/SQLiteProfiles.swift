import AccountEvents
import SQLite

/// Reads what applications ask for.
final class SQLiteProfiles {
  private let account: Statement
  private let tokens: Statement
  private let ended: Statement
  private let arrivals: SQLiteArrivals

  init(_ database: Database) throws(SQLiteError) {
    arrivals = try SQLiteArrivals(database)
    account = try database.prepare(
      """
      SELECT mail.status, mail.since, mail.is_private, mail.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at, team, subject
      FROM (SELECT 1) LEFT JOIN mail ON mail.hash = ?1 LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure_fence AS erasure ON erasure.hash = ?1
      """)
    tokens = try database.prepare(
      """
      SELECT client, max(issued_at), max(validated_at) FROM token
      WHERE hash = ? AND kind = 'refresh' AND invalid_at IS NULL GROUP BY client
      """)
    ended = try database.prepare(
      """
      SELECT client FROM ended_authorization WHERE hash = ?1
      UNION SELECT client FROM token WHERE hash = ?1 AND invalid_at IS NOT NULL
      """)
  }

  /// What there is of an account under a hash.
  func facts(of id: AccountID, _ hash: AccountHash) throws(SQLiteError) -> ProfileFacts {
    var facts = try facts(of: hash)
    facts.origin = try arrivals.origin(of: id)
    return facts
  }

  /// What there is under a hash.
  private func facts(of hash: AccountHash) throws(SQLiteError) -> ProfileFacts {
    var facts = ProfileFacts()
    try account.forEach(hash.bytes) { row throws(SQLiteError) in
      facts.relay = RelayFacts(relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
      guard let key = facts.relay.account.key else { return }
      facts.row = SealedAccount(hash: hash, team: try row.value(10), subject: try row.value(11), key: key)
    }
    try tokens.forEach(hash.bytes) { row throws(SQLiteError) in
      guard let client = ClientID(try row.value(0)) else { throw .malformed("a token's client") }
      facts.signIns[client] = (try row.time(1), try row.timeIfPresent(2))
    }
    try ended.forEach(hash.bytes) { row throws(SQLiteError) in facts.ended.insert(try row.value(0)) }
    return facts
  }
}

extension SQLiteReader {
  /// What is known of an account; nil while accounts move to another hashing key, which takes somebody who writes.
  func knowledge(of id: AccountID) throws(AccountStoreError) -> AccountKnowledge? {
    try snapshot { () throws(AccountStoreError) in
      guard !keys.state.isMoving else { return nil }
      let hash = keys.hashing.newest(of: id)
      let facts = try AccountStoreError.translating { () throws(SQLiteError) in try profiles.facts(of: id, hash) }
      return try facts.knowledge(of: hash, with: keys)
    }
  }
}

extension SQLiteStoreFile {
  /// What is known of an account, under its newest hash.
  func knowledge(of id: AccountID) throws(AccountStoreError) -> AccountKnowledge {
    try write { () throws(AccountStoreError) in
      if keys.state.isMoving { _ = try move(CollectionOfOne(keys.hashing.move(of: id))) }
      let hash = keys.hashing.newest(of: id)
      let facts = try AccountStoreError.translating { () throws(SQLiteError) in try profiles.facts(of: id, hash) }
      return try facts.knowledge(of: hash, with: keys)
    }
  }
}

extension SQLiteAccountStore {
  /// What is known of an account.
  package func knowledge(of id: AccountID) async throws(AccountStoreError) -> AccountKnowledge {
    let known = try await readers.run { reader throws(AccountStoreError) in try reader.knowledge(of: id) }
    if let known { return known }
    return try await commits.run { file throws(AccountStoreError) in try file.knowledge(of: id) }
  }
}
