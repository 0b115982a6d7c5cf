import AccountEvents
import SQLite

/// Answers mailers, with a connection of its own or another's.
final class SQLiteRelayReader {
  let database: Database
  private let keys: StoreKeys
  private let reading: Statement

  init(_ database: Database, _ keys: StoreKeys) throws(SQLiteError) {
    (self.database, self.keys) = (database, keys)
    reading = try database.prepare(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM (SELECT 1) LEFT JOIN relay ON relay.hash = ?1 LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure ON erasure.hash = ?1
      """)
  }

  /// Opens a connection that only reads: it sees what was committed, and waits for no writer.
  static func open(_ path: String, _ keys: StoreKeys) throws(AccountStoreError) -> SQLiteRelayReader {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try SQLiteRelayReader(try Database(path, .readOnly, busyTimeout: SQLiteStoreFile.busyTimeout), keys)
    }
  }

  /// What is known of mail to each, all as of one moment.
  func knowledge(of hashes: [AccountHash]) throws(AccountStoreError) -> [RelayKnowledge] {
    let found = try AccountStoreError.translating { () throws(SQLiteError) in
      try database.snapshot { () throws(SQLiteError) in
        var found: [RelayFacts] = []
        for hash in hashes { found.append(try facts(of: hash)) }
        return found
      }
    }
    var knowledge: [RelayKnowledge] = []
    for (hash, facts) in zip(hashes, found) { knowledge.append(try facts.knowledge(of: hash, with: keys)) }
    return knowledge
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
