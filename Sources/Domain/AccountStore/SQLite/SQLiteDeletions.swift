package import AccountEvents
import SQLite

/// The rows of deletions that were asked for in an app.
final class SQLiteDeletions {
  private let insertion: Statement
  private let lowering: Statement
  private let lastReading: Statement
  private let reading: Statement
  private let newestToken: Statement
  private let begun: Statement
  private let publication: Statement
  private let entry: Statement
  private let unsettled: Statement

  init(_ database: Database) throws(SQLiteError) {
    insertion = try database.prepare(
      "INSERT INTO deletion (event_id, account, team, client, requested_at, had_tokens) VALUES (?, ?, ?, ?, ?, ?)")
    lowering = try database.prepare(
      "UPDATE code_exchange SET begun_at = ?2 WHERE account = ?1 AND outcome = 'begun' AND begun_at > ?2")
    lastReading = try database.prepare(
      """
      SELECT event_id, account, team, client, requested_at, had_tokens FROM deletion
      WHERE account = ? ORDER BY requested_at DESC LIMIT 1
      """)
    reading = try database.prepare(
      "SELECT event_id, account, team, client, requested_at, had_tokens FROM deletion WHERE event_id = ?")
    newestToken = try database.prepare("SELECT max(issued_at) FROM token WHERE hash = ?")
    begun = try database.prepare(
      """
      SELECT max(begun_at) FROM code_exchange
      WHERE begun_at > ?2 AND begun_at <= ?3 AND account = ?1 AND outcome = 'begun'
      """)
    publication = try database.prepare("SELECT NOT EXISTS (SELECT 1 FROM outbox WHERE event_id = ?)")
    entry = try database.prepare(
      """
      SELECT at, outcome, detail, topic, partition, "offset" FROM ledger WHERE consumer = ? AND event_id = ?
      """)
    unsettled = try database.prepare(
      """
      SELECT account, requested_at, NOT EXISTS (SELECT 1 FROM outbox WHERE event_id = deletion.event_id),
        EXISTS (SELECT 1 FROM ledger WHERE consumer = ?1 AND event_id = deletion.event_id)
      FROM deletion
      WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE consumer = ?2 AND event_id = deletion.event_id)
      ORDER BY requested_at, event_id LIMIT ?3
      """)
  }

  /// Writes a deletion down. No exchange that is under way was begun later.
  func add(_ deletion: Deletion) throws(SQLiteError) {
    try insertion.run(
      deletion.id.text, deletion.account.bytes, deletion.team.text, deletion.client.text,
      deletion.requestedAt.milliseconds, deletion.hadTokens ? Int64(1) : 0)
    try lowering.run(deletion.account.bytes, deletion.requestedAt.milliseconds)
  }

  /// The one that was asked for last.
  func last(of account: AccountID) throws(SQLiteError) -> Deletion? {
    try lastReading.first(account.bytes) { row throws(SQLiteError) in try Deletion(reading: row) }
  }

  /// When the youngest token was issued that is held under a hash.
  func newestToken(of hash: AccountHash) throws(SQLiteError) -> Timestamp? {
    let time = try newestToken.first(hash.bytes) { row throws(SQLiteError) in try row.timeIfPresent(0) }
    return time ?? nil
  }

  /// When the youngest exchange was begun that is under way, and was begun after `time` and not after `end`.
  func exchangeBegun(
    of account: AccountID, after time: Timestamp, until end: Timestamp
  ) throws(SQLiteError) -> Timestamp? {
    let begunAt = try begun.first(account.bytes, time.milliseconds, end.milliseconds) { row throws(SQLiteError) in
      try row.timeIfPresent(0)
    }
    return begunAt ?? nil
  }

  /// Those of which the eraser has settled nothing, oldest first.
  func unsettled(
    _ revoker: ConsumerName, _ eraser: ConsumerName, limit: Int
  ) throws(SQLiteError) -> [OpenDeletion] {
    var found: [OpenDeletion] = []
    try unsettled.forEach(revoker.text, eraser.text, Int64(limit)) { row throws(SQLiteError) in
      guard let account = AccountID(bytes: try row.value(0)) else { throw .malformed("a deletion") }
      found.append(
        OpenDeletion(
          account, requestedAt: try row.time(1), isPublished: try row.value(2, as: Int64.self) == 1,
          isRevoked: try row.value(3, as: Int64.self) == 1))
    }
    return found
  }

  /// How far a deletion is, but for the steps of its erasure.
  func progress(
    of id: EventID, by consumers: [ConsumerName], _ steps: [ErasureStep]
  ) throws(SQLiteError) -> DeletionProgress? {
    let deletion = try reading.first(id.text) { row throws(SQLiteError) in try Deletion(reading: row) }
    guard let deletion else { return nil }
    let isPublished = try publication.first(id.text) { row throws(SQLiteError) in try row.value(0, as: Int64.self) == 1
    }
    var entries: [ConsumerName: LedgerEntry] = [:]
    for consumer in consumers {
      try entry.forEach(consumer.text, id.text) { row throws(SQLiteError) in
        entries[consumer] = try LedgerEntry(reading: row)
      }
    }
    return DeletionProgress(deletion, isPublished: isPublished ?? false, entries: entries, steps: steps)
  }
}

extension Deletion {
  /// Reads a row.
  fileprivate init(reading row: borrowing Row) throws(SQLiteError) {
    guard let id = EventID(try row.value(0)), let account = AccountID(bytes: try row.value(1)),
      let team = TeamID(try row.value(2)), let client = ClientID(try row.value(3))
    else { throw .malformed("a deletion") }
    self.init(
      id: id, account: account, team: team, client: client, requestedAt: try row.time(4),
      hadTokens: try row.value(5, as: Int64.self) == 1)
  }
}

extension SQLiteStoreFile {
  /// Writes a request for a deletion and its event, or finds the one of before.
  func requestDeletion(
    of account: Account, in client: ClientID, as request: EventID, at time: Timestamp
  ) throws(AccountStoreError) -> Deletion? {
    try write { () throws(AccountStoreError) in
      try move(CollectionOfOne(account))
      let (hash, id) = (keys.hash(of: account), keys.id(of: account))
      let facts = try AccountStoreError.translating { () throws(SQLiteError) in
        DeletionFacts(
          account: try accounts.facts(of: hash), newestToken: try deletions.newestToken(of: hash),
          last: try deletions.last(of: id))
      }
      switch facts.judgement(of: request, account, id, in: client, at: time) {
      case .nothing: return nil
      case .same(let deletion): return deletion
      case .new(let deletion):
        let event = try keys.seal(deletion, of: account, at: time)
        try AccountStoreError.translating { () throws(SQLiteError) in
          try deletions.add(deletion)
          try outbox.add(event)
        }
        return deletion
      }
    }
  }
}

extension SQLiteStoreFile {
  /// Those that are neither carried out nor void.
  func openDeletions(
    _ revoker: ConsumerName, _ eraser: ConsumerName, limit: Int
  ) throws(AccountStoreError) -> [OpenDeletion] {
    let unsettled = try readRows { () throws(SQLiteError) in
      try deletions.unsettled(revoker, eraser, limit: limit)
    }
    // Mostly there are none, and nothing is to be moved.
    if unsettled.isEmpty { return [] }
    return try write { () throws(AccountStoreError) in
      if keys.state.isMoving { _ = try move(Set(unsettled.map { keys.hashing.move(of: $0.account) })) }
      var open: [OpenDeletion] = []
      for deletion in unsettled {
        let facts = try AccountStoreError.translating { () throws(SQLiteError) in
          try accounts.facts(of: keys.hash(of: deletion.account))
        }
        if !deletion.isOver(facts) { open.append(deletion) }
      }
      return open
    }
  }
}

extension SQLiteAccountStore {
  /// Those that are neither carried out nor void.
  package func openDeletions(
    _ revoker: ConsumerName, _ eraser: ConsumerName, limit: Int
  ) async throws(AccountStoreError) -> [OpenDeletion] {
    try await writer.run { file throws(AccountStoreError) in
      try file.openDeletions(revoker, eraser, limit: limit)
    }
  }

  /// Writes a request for a deletion.
  package func requestDeletion(
    of account: Account, in client: ClientID, as request: EventID, at time: Timestamp
  ) async throws(AccountStoreError) -> Deletion? {
    try await writer.run { file throws(AccountStoreError) in
      try file.requestDeletion(of: account, in: client, as: request, at: time)
    }
  }

  /// The one that was asked for last.
  package func lastDeletion(of account: AccountID) async throws(AccountStoreError) -> Deletion? {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.deletions.last(of: account) }
    }
  }

  /// When the youngest sign-in was begun of which nothing has come yet.
  package func signInUnderWay(
    of account: AccountID, after time: Timestamp, until end: Timestamp
  ) async throws(AccountStoreError) -> Timestamp? {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        try file.deletions.exchangeBegun(of: account, after: time, until: end)
      }
    }
  }

  /// How far it is.
  package func deletion(
    _ id: EventID, by consumers: [ConsumerName]
  ) async throws(AccountStoreError) -> DeletionProgress? {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        try file.deletions.progress(of: id, by: consumers, try file.erasures.steps(of: id))
      }
    }
  }
}
