import AccountEvents
import SQLite

/// The rows of accounts: their keys and names, tokens and mail, and what erasures have left of them.
///
/// A state of mail has a fence in its row (`ChangedAccount.fenceOfMail`). Before such a row is deleted, or gets another
/// one's fence, its own goes to the other fences: none is lost.
final class SQLiteAccounts {
  private let facts: Statement
  private let removal: Statement
  private let fence: Statement
  private let insertion: Statement
  private let signIn: Statement
  private let tokenInsertion: Statement
  private let tokenReading: Statement
  private let keptTokenReading: Statement
  private let tokenRemoval: Statement
  private let surplusRemoval: Statement
  private let tokenQuestion: Statement
  private let ended: Statement
  private let endedReading: Statement
  private let appReading: Statement
  private let ownRevocation: Statement
  private let ownRevocationReading: Statement
  private let ownRevocationTimes: Statement
  private let database: Database
  private let mail: Statement
  private let mailUpdate: Statement
  private let fencedMailUpdate: Statement
  private let mailReading: Statement
  private let mailRemoval: Statement
  private let fenceOfMail: Statement
  private let lowerFence: Statement

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    facts = try database.prepare(
      """
      SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM (SELECT 1) LEFT JOIN account ON account.hash = ?1
        LEFT JOIN erasure_fence AS erasure ON erasure.hash = ?1
      """)
    removal = try database.prepare("DELETE FROM account WHERE hash = ?")
    fence = try database.prepare(
      """
      INSERT INTO erasure_fence (hash, at, is_final, signed_in_at, generation) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET at = excluded.at, is_final = excluded.is_final, signed_in_at = excluded.signed_in_at
      """)
    insertion = try database.prepare(
      """
      INSERT INTO account (hash, team, subject, master_key_id, data_key, signed_in_at, generation)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """)
    signIn = try database.prepare("UPDATE account SET signed_in_at = ?2 WHERE hash = ?1")
    tokenInsertion = try database.prepare(
      """
      INSERT INTO token (hash, fingerprint, kind, client, issued_at, value, claimed_at, validated_at, invalid_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET issued_at = max(issued_at, excluded.issued_at)
      """)
    tokenReading = try database.prepare(
      "SELECT kind, client, issued_at, value FROM token WHERE hash = ? ORDER BY issued_at, number")
    keptTokenReading = try database.prepare(
      """
      SELECT kind, client, issued_at, value, claimed_at, validated_at, invalid_at FROM token
      WHERE hash = ? ORDER BY issued_at, number
      """)
    tokenRemoval = try database.prepare(
      "DELETE FROM token WHERE hash = ?1 AND issued_at <= ?3 AND (?2 = '' OR client = ?2)")
    surplusRemoval = try database.prepare(
      """
      DELETE FROM token WHERE hash = ?1 AND client = ?2 AND kind = 'refresh' AND number NOT IN (
        SELECT number FROM token WHERE hash = ?1 AND client = ?2 AND kind = 'refresh' AND invalid_at IS NULL
        ORDER BY issued_at DESC, number DESC LIMIT ?3)
      """)
    tokenQuestion = try database.prepare(
      "SELECT 1 FROM token WHERE hash = ?1 AND issued_at <= ?3 AND (?2 = '' OR client = ?2) LIMIT 1")
    ended = try database.prepare(
      """
      INSERT INTO ended_authorization (hash, client, issued_up_to, generation) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET issued_up_to = max(issued_up_to, excluded.issued_up_to)
      """)
    endedReading = try database.prepare("SELECT client, issued_up_to FROM ended_authorization WHERE hash = ?")
    appReading = try database.prepare(
      "SELECT client, max(issued_at) FROM token WHERE hash = ? AND invalid_at IS NULL GROUP BY client")
    ownRevocation = try database.prepare(
      """
      INSERT INTO own_revocation (hash, client, at, is_proven, generation) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET at = excluded.at, is_proven = excluded.is_proven
      """)
    ownRevocationTimes = try database.prepare("SELECT at FROM own_revocation WHERE hash = ?")
    ownRevocationReading = try database.prepare(
      """
      SELECT client, at, is_proven FROM own_revocation AS own
      WHERE hash = ?1
        AND NOT EXISTS (SELECT 1 FROM account WHERE hash = ?1 AND signed_in_at > own.at)
        AND NOT EXISTS (SELECT 1 FROM erasure_fence WHERE hash = ?1 AND signed_in_at > own.at)
      ORDER BY client
      """)
    mail = try database.prepare(
      """
      INSERT INTO mail (
        hash, status, since, is_private, address, fence_consumer, fence_severity, fence_at, fence_tie)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET status = excluded.status, since = excluded.since, is_private = excluded.is_private,
        address = excluded.address, fence_consumer = excluded.fence_consumer, fence_severity = excluded.fence_severity,
        fence_at = excluded.fence_at, fence_tie = excluded.fence_tie
      """)
    mailUpdate = try database.prepare(
      "UPDATE mail SET status = ?2, since = ?3, is_private = ?4, address = ?5 WHERE hash = ?1")
    fencedMailUpdate = try database.prepare(
      """
      UPDATE mail SET status = ?2, since = ?3, is_private = ?4, address = ?5, fence_at = ?8, fence_tie = ?9
      WHERE hash = ?1 AND fence_consumer = ?6 AND fence_severity = ?7
      """)
    mailReading = try database.prepare("SELECT status, since, is_private, address FROM mail WHERE hash = ?")
    mailRemoval = try database.prepare("DELETE FROM mail WHERE hash = ?")
    fenceOfMail = try database.prepare(
      """
      INSERT INTO event_fence (consumer, hash, severity, at, tie, generation)
      SELECT fence_consumer, hash, fence_severity, fence_at, fence_tie, ?2 FROM mail
      WHERE hash = ?1 AND fence_consumer IS NOT NULL
      ON CONFLICT DO UPDATE SET at = excluded.at, tie = excluded.tie WHERE (excluded.at, excluded.tie) > (at, tie)
      """)
    lowerFence = try database.prepare("DELETE FROM event_fence WHERE consumer = ? AND hash = ? AND severity = ?")
  }

  // MARK: Reading

  /// The account's key, sign-ins and erasures.
  func facts(of hash: AccountHash) throws(SQLiteError) -> AccountFacts {
    let facts = try facts.first(hash.bytes) { row throws(SQLiteError) in try AccountFacts(reading: row, from: 0) }
    guard let facts else { throw .malformed("a row that is always there") }
    return facts
  }

  /// The same, with what is known of mail.
  func relayFacts(of hash: AccountHash) throws(SQLiteError) -> RelayFacts {
    let relay = try mailReading.first(hash.bytes) { row throws(SQLiteError) in try SealedRelay(reading: row) }
    return RelayFacts(relay: relay ?? nil, account: try facts(of: hash))
  }

  /// What there is beside its row.
  func kept(of hash: AccountHash) throws(SQLiteError) -> KeptAccount {
    var kept = KeptAccount(
      relay: try mailReading.first(hash.bytes) { row throws(SQLiteError) in try SealedRelay(reading: row) } ?? nil)
    try keptTokenReading.forEach(hash.bytes) { row throws(SQLiteError) in
      var token = try SealedToken(reading: row)
      token.marks = ValidationMarks(
        claimedAt: try row.timeIfPresent(4), validatedAt: try row.timeIfPresent(5),
        invalidAt: try row.timeIfPresent(6))
      kept.tokens.append(token)
    }
    return kept
  }

  /// The account's tokens, oldest first.
  func tokens(of hash: AccountHash) throws(SQLiteError) -> [SealedToken] {
    var tokens: [SealedToken] = []
    try tokenReading.forEach(hash.bytes) { row throws(SQLiteError) in tokens.append(try SealedToken(reading: row)) }
    return tokens
  }

  /// Whether there are tokens of the account with this hash that an event ends.
  func holdsTokens(_ question: TokenQuestion, of hash: AccountHash) throws(SQLiteError) -> Bool {
    for app in question.clients.map({ $0.map(\.text) }) ?? [EndedAuthorizations.everyApp] {
      let found: Int64? = try tokenQuestion.first(
        hash.bytes, app, question.issuedUpTo.milliseconds
      ) { row throws(SQLiteError) in try row.value(0) }
      if found != nil { return true }
    }
    return false
  }

  /// Which authorizations are over.
  func endedAuthorizations(of hash: AccountHash) throws(SQLiteError) -> EndedAuthorizations {
    var found = EndedAuthorizations()
    try endedReading.forEach(hash.bytes) { row throws(SQLiteError) in
      found.endedAt[try row.value(0)] = try row.time(1)
    }
    return found
  }

  /// The apps of which a token is held that is not known to be invalid, and when the newest of each was issued.
  func apps(of hash: AccountHash) throws(SQLiteError) -> [ClientID: Timestamp] {
    var apps: [ClientID: Timestamp] = [:]
    try appReading.forEach(hash.bytes) { row throws(SQLiteError) in
      guard let client = ClientID(try row.value(0)) else { throw .malformed("a token's client") }
      apps[client] = try row.time(1)
    }
    return apps
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

  /// When we have revoked something ourselves, be it given anew.
  func timesOfOwnRevocations(of hash: AccountHash) throws(SQLiteError) -> [Timestamp] {
    var times: [Timestamp] = []
    try ownRevocationTimes.forEach(hash.bytes) { row throws(SQLiteError) in times.append(try row.time(0)) }
    return times
  }

  // MARK: Writing

  /// Writes what has become of the account, with its values sealed. Rows go before rows come: one that was erased may have
  /// begun anew. `generation` is that of its hash.
  func write(
    _ account: ChangedAccount, _ tokens: [ChangedAccount.TokenRow], _ relayRow: SealedRelay?, generation: Int64
  ) throws(SQLiteError) {
    let hash = account.hash.bytes
    if account.isDeleted {
      try fenceOfMail.run(hash, generation)
      try removal.run(hash)
    }
    if account.isFenced, let erasure = account.facts.erasure {
      try fence.run(
        hash, erasure.at.milliseconds, erasure.isFinal ? 1 as Int64 : 0,
        account.facts.erasureSignedInAt?.milliseconds, generation)
    }
    if let row = account.made {
      try insertion.run(
        hash, row.team, row.subject, row.key.masterKeyID, row.key.bytes, row.signedInAt?.milliseconds, generation)
    }
    if let time = account.signIn { try signIn.run(hash, time.milliseconds) }
    for row in tokens {
      let (token, marks) = (row.token.token, row.token.marks)
      try tokenInsertion.run(
        hash, row.fingerprint, token.kind.rawValue, token.client.text, row.token.issuedAt.milliseconds, row.value,
        marks.claimedAt?.milliseconds, marks.validatedAt?.milliseconds, marks.invalidAt?.milliseconds)
    }
    for app in account.signedInTo { try surplusRemoval.run(hash, app.text, StoredToken.mostOfAnApp) }
    for revocation in account.ownRevocations.values {
      try ownRevocation.run(
        hash, revocation.client.text, revocation.time.milliseconds, revocation.isProven ? 1 as Int64 : 0, generation)
    }
    for (app, time) in account.endedAuthorizations {
      try tokenRemoval.run(hash, app, time.milliseconds)
      try ended.run(hash, app, time.milliseconds, generation)
    }
    if case .removed = account.relay {
      try fenceOfMail.run(hash, generation)
      try mailRemoval.run(hash)
    }
    if let relayRow { try write(relayRow, account, generation: generation) }
  }

  /// Writes a state of mail, with the fence that belongs to it.
  private func write(_ row: SealedRelay, _ account: ChangedAccount, generation: Int64) throws(SQLiteError) {
    let hash = account.hash.bytes
    let (status, since) = (row.status.rawValue, row.since.milliseconds)
    let isPrivate: Int64 = row.isPrivate ? 1 : 0
    let fence = account.fenceOfMail
    let (consumer, severity) = (fence?.consumer.text, fence.map { Int64($0.severity) })
    let (at, tie) = (fence?.at.milliseconds, fence.map { Int64($0.tie) })
    // Mostly there is one, with a fence of the same kind: that costs half as much as an UPSERT.
    if account.made == nil {
      if fence == nil {
        try mailUpdate.run(hash, status, since, isPrivate, row.address)
      } else {
        try fencedMailUpdate.run(hash, status, since, isPrivate, row.address, consumer, severity, at, tie)
      }
      if database.changes > 0 { return }
      try fenceOfMail.run(hash, generation)
    }
    if fence != nil { try lowerFence.run(consumer, hash, severity) }
    try mail.run(hash, status, since, isPrivate, row.address, consumer, severity, at, tie)
  }
}

extension ChangedAccount {
  /// The fence that stands in the row of its state of mail, where that is written: one that is the highest of its kind.
  /// What the table of the others has of that kind is lower.
  var fenceOfMail: Fence? {
    guard case .set = relay else { return nil }
    return fences.first(where: \.isHighest)
  }
}

extension AccountFacts {
  /// Reads key, sign-in and erasures from six columns.
  init(reading row: borrowing Row, from column: Int) throws(SQLiteError) {
    if let bytes = try row.value(column, as: [UInt8]?.self) {
      key = WrappedKey(bytes: bytes, masterKeyID: try row.value(column + 1))
    }
    signedInAt = try row.timeIfPresent(column + 2)
    guard let at = try row.timeIfPresent(column + 3) else { return }
    erasure = ErasureFence(at: at, isFinal: try row.value(column + 4, as: Int64.self) == 1)
    erasureSignedInAt = try row.timeIfPresent(column + 5)
  }
}

extension SealedRelay {
  /// Reads a state of mail from a row's first columns; nil where there is none.
  init?(reading row: borrowing Row) throws(SQLiteError) {
    guard let since = try row.timeIfPresent(1) else { return nil }
    self.init(
      status: try row.choice(0), since: since, isPrivate: try row.value(2, as: Int64.self) == 1,
      address: try row.value(3))
  }
}

extension SealedToken {
  /// Reads a token from a row's first columns.
  init(reading row: borrowing Row) throws(SQLiteError) {
    guard let client = ClientID(try row.value(1)) else { throw .malformed("a token's client") }
    self.init(kind: try row.choice(0), client: client, issuedAt: try row.time(2), value: try row.value(3))
  }
}
