import AccountEvents
import EventLoop
import SQLite

/// Reads what applications ask for.
final class SQLiteProfiles {
  private let profile: Statement

  init(_ database: Database) throws(SQLiteError) {
    // One statement: to begin and end another takes as long as one of the look-ups. The tokens are not grouped: for the few
    // that most accounts have, that takes longer than to read them.
    profile = try database.prepare(
      """
      SELECT mail.status, mail.since, mail.is_private, mail.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at, team, subject,
        origin.from_team, origin.former, origin.client, NULL
      FROM (SELECT 1) LEFT JOIN mail ON mail.hash = ?1 LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure_fence AS erasure ON erasure.hash = ?1
        LEFT JOIN transferred_account AS origin ON origin.account = ?2
      UNION ALL
      SELECT kind = 'refresh' AND invalid_at IS NULL, issued_at, validated_at, invalid_at,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, client
      FROM token WHERE hash = ?1
      UNION ALL
      SELECT 0, NULL, NULL, issued_up_to, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, client
      FROM ended_authorization WHERE hash = ?1
      """)
  }

  /// What there is of an account under a hash.
  func facts(of id: AccountID, _ hash: AccountHash) throws(SQLiteError) -> ProfileFacts {
    var facts = ProfileFacts()
    try profile.forEach(hash.bytes, id.bytes) { row throws(SQLiteError) in
      if let app = try row.value(15, as: String?.self) {
        try facts.note(app, row)
      } else {
        try facts.note(row, of: hash)
      }
    }
    return facts
  }
}

extension ProfileFacts {
  /// Takes note of the account's row.
  fileprivate mutating func note(_ row: borrowing Row, of hash: AccountHash) throws(SQLiteError) {
    relay = RelayFacts(relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
    guard let key = relay.account.key else { return }
    self.row = SealedAccount(hash: hash, team: try row.value(10), subject: try row.value(11), key: key)
    origin = try AccountOrigin(reading: row, from: 12)
  }

  /// Takes note of a token, or of authorizations that have ended.
  fileprivate mutating func note(_ app: String, _ row: borrowing Row) throws(SQLiteError) {
    if try row.value(3, as: Int64?.self) != nil { ended.insert(app) }
    guard try row.value(0, as: Int64.self) == 1 else { return }
    guard let client = ClientID(app) else { throw .malformed("a token's client") }
    note(AccountProfile.SignIn(client: client, time: try row.time(1), validatedAt: try row.timeIfPresent(2)))
  }
}

extension SQLiteReader {
  /// What is known of an account; nil while accounts move to another hashing key, which takes somebody who writes.
  func knowledge(of id: AccountID) throws(AccountStoreError) -> AccountKnowledge? {
    guard !keys.state.isMoving else { return nil }
    let hash = keys.hashing.newest(of: id)
    let facts = try AccountStoreError.translating { () throws(SQLiteError) in try profiles.facts(of: id, hash) }
    return try facts.knowledge(of: hash, with: keys)
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
    let known: Result<AccountKnowledge?, AccountStoreError> = await unsafe withUnsafeContinuation {
      unsafe reads.ask(isBrief: true, { reader throws(AccountStoreError) in try reader.knowledge(of: id) }, $0)
    }
    if let known = try known.get() { return known }
    return try await commits.run { file throws(AccountStoreError) in try file.knowledge(of: id) }
  }
}
