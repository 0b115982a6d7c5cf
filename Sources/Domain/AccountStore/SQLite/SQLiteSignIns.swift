package import AccountEvents
package import Cryptography
import SQLite

/// The rows of code exchanges, and what applications ask for.
final class SQLiteSignIns {
  private let insertion: Statement
  private let cleaning: Statement
  private let reading: Statement
  private let outcomeReading: Statement
  private let ending: Statement
  private let removal: Statement
  private let unfinished: Statement
  private let database: Database

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    insertion = try database.prepare(
      """
      INSERT INTO code_exchange (request, content, code, account, client, begun_at, outcome, signed_in_at)
      VALUES (?1, ?2, ?3, ?4, ?5,
        max(?6, coalesce((SELECT max(requested_at) + 1 FROM deletion WHERE account = ?4), ?6)), 'begun', 0)
      ON CONFLICT DO NOTHING
      """)
    cleaning = try database.prepare("DELETE FROM code_exchange WHERE begun_at < ? AND outcome <> 'begun'")
    reading = try database.prepare(
      """
      SELECT request, content, outcome, signed_in_at FROM code_exchange WHERE request = ?1 OR code = ?2
      ORDER BY request = ?1 DESC LIMIT 1
      """)
    outcomeReading = try database.prepare(
      "SELECT outcome, begun_at, signed_in_at FROM code_exchange WHERE request = ?")
    ending = try database.prepare(
      "UPDATE code_exchange SET outcome = ?2, signed_in_at = ?3 WHERE request = ?1 AND outcome = 'begun'")
    removal = try database.prepare("DELETE FROM code_exchange WHERE request = ? AND outcome = 'begun'")
    unfinished = try database.prepare(
      """
      SELECT request, content, code, account, client, begun_at FROM code_exchange
      WHERE begun_at < ? AND outcome = 'begun' ORDER BY begun_at LIMIT ?
      """)
  }

  /// Notes an exchange, or finds how it stands. Nothing came of it yet where `outcome` is nil.
  func begin(
    _ exchange: CodeExchange
  ) throws(SQLiteError) -> (request: [UInt8], content: [UInt8], outcome: String, at: Timestamp)? {
    try cleaning.run((exchange.begunAt - CodeExchange.memory).milliseconds)
    try insertion.run(
      exchange.request.bytes, exchange.content.bytes, exchange.code.bytes, exchange.account.bytes,
      exchange.client.text, exchange.begunAt.milliseconds)
    if database.changes > 0 { return nil }
    return try reading.first(exchange.request.bytes, exchange.code.bytes) { row throws(SQLiteError) in
      (
        request: try row.value(0), content: try row.value(1), outcome: try row.value(2), at: try row.time(3)
      )
    }
  }

  /// What came of an exchange and when, and when it was begun; nil where there is none, and no outcome where nothing came
  /// of it yet.
  func outcome(
    of request: SHA256Digest
  ) throws(SQLiteError) -> (outcome: CodeExchange.Outcome?, begunAt: Timestamp, at: Timestamp)? {
    try outcomeReading.first(request.bytes) { row throws(SQLiteError) in
      (CodeExchange.Outcome(rawValue: try row.value(0)), try row.time(1), try row.time(2))
    }
  }

  /// Notes what came of it, where nothing has yet.
  func end(_ request: SHA256Digest, _ outcome: CodeExchange.Outcome, at time: Timestamp) throws(SQLiteError) {
    try ending.run(request.bytes, outcome.rawValue, time.milliseconds)
  }

  /// Forgets an exchange of which nothing came.
  func forget(_ request: SHA256Digest) throws(SQLiteError) { try removal.run(request.bytes) }

  /// The exchanges of which nothing came, oldest first.
  func unfinished(before time: Timestamp, limit: Int) throws(SQLiteError) -> [CodeExchange] {
    var found: [CodeExchange] = []
    try unfinished.forEach(time.milliseconds, Int64(limit)) { row throws(SQLiteError) in
      guard let request = SHA256Digest(bytes: try row.value(0)), let content = SHA256Digest(bytes: try row.value(1)),
        let code = SHA256Digest(bytes: try row.value(2)), let account = AccountID(bytes: try row.value(3)),
        let client = ClientID(try row.value(4))
      else { throw .malformed("an exchange") }
      found.append(
        CodeExchange(
          request: request, content: content, code: code, account: account, client: client, begunAt: try row.time(5)))
    }
    return found
  }
}

extension SQLiteStoreFile {
  /// Adds a sign-in, and returns what became of it; of an exchange, once.
  func recordSignIn(
    _ account: Account, at time: Timestamp, _ tokens: [NewToken], of request: SHA256Digest?,
    claiming claim: TransferClaim?
  ) throws(AccountStoreError) -> RecordedSignIn {
    try write { () throws(AccountStoreError) in
      let found = try AccountStoreError.translating { () throws(SQLiteError) in
        try request.flatMap { request throws(SQLiteError) in try signIns.outcome(of: request) }
      }
      if let found, let outcome = found.outcome, let recorded = RecordedSignIn(outcome, at: found.at, of: tokens) {
        return recorded
      }
      try move(CollectionOfOne(account))
      let hash = keys.hash(of: account)
      var time = time
      if let found {
        let (deletion, revocations) = try AccountStoreError.translating { () throws(SQLiteError) in
          (try deletions.last(of: keys.id(of: account)), try accounts.timesOfOwnRevocations(of: hash))
        }
        time = RecordedSignIn.time(time, begunAt: found.begunAt, beside: deletion, revocations)
      }
      let (facts, ended) = try AccountStoreError.translating { () throws(SQLiteError) in
        (try accounts.facts(of: hash), try accounts.endedAuthorizations(of: hash))
      }
      var changed = ChangedAccount(hash, facts)
      let over = try changed.signIn(account, at: time, tokens, ended, keys)
      var recorded = RecordedSignIn(at: time, isNew: facts.signedInAt == nil, over: over)
      if let claim, !facts.isErased(at: time) {
        recorded.conflict = try write(changed, of: account, claim, at: time)
      } else {
        try write([changed])
      }
      guard let request else { return recorded }
      try AccountStoreError.translating { () throws(SQLiteError) in
        try signIns.end(request, recorded.outcome, at: recorded.at)
      }
      return recorded
    }
  }

  /// Whether the sign-in at `time` that came of an exchange was ended since.
  fileprivate func isOver(_ exchange: CodeExchange, at time: Timestamp) throws(AccountStoreError) -> Bool {
    try write { () throws(AccountStoreError) in
      if keys.state.isMoving { _ = try move(CollectionOfOne(keys.hashing.move(of: exchange.account))) }
      let hash = keys.hashing.newest(of: exchange.account)
      return try AccountStoreError.translating { () throws(SQLiteError) in
        exchange.isOver(
          at: time, try accounts.facts(of: hash), try accounts.endedAuthorizations(of: hash),
          try deletions.last(of: exchange.account))
      }
    }
  }
}

extension SQLiteAccountStore {
  /// Adds a sign-in with its tokens.
  package func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken], of request: SHA256Digest?,
    claiming claim: TransferClaim?
  ) async throws(AccountStoreError) -> RecordedSignIn {
    try await commits.run { file throws(AccountStoreError) in
      try file.recordSignIn(account, at: time, tokens, of: request, claiming: claim)
    }
  }

  /// Notes an exchange.
  package func begin(_ exchange: CodeExchange) async throws(AccountStoreError) -> CodeExchange.Standing {
    try await commits.run { file throws(AccountStoreError) in
      let row = try file.writeRows { () throws(SQLiteError) in try file.signIns.begin(exchange) }
      guard let row else { return .begun }
      let standing = try exchange.standing(
        request: row.request, content: row.content, outcome: row.outcome, at: row.at)
      guard case .finished(let outcome, let time) = standing, outcome.isSignIn else { return standing }
      return try file.isOver(exchange, at: time) ? .finished(.over, at: time) : standing
    }
  }

  /// Notes that nothing comes of an exchange.
  package func end(
    _ exchange: CodeExchange, as ending: CodeExchange.Ending
  ) async throws(AccountStoreError) {
    try await commits.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in
        try file.signIns.end(exchange.request, ending.outcome, at: exchange.begunAt)
      }
    }
  }

  /// Forgets an exchange.
  package func forget(_ exchange: CodeExchange) async throws(AccountStoreError) {
    try await commits.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in try file.signIns.forget(exchange.request) }
    }
  }

  /// What nothing came of.
  package func unfinishedExchanges(
    before time: Timestamp, limit: Int
  ) async throws(AccountStoreError) -> [CodeExchange] {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.signIns.unfinished(before: time, limit: limit) }
    }
  }
}
