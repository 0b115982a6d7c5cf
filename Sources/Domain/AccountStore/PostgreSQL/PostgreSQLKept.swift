import AccountEvents
import PostgreSQL

/// What the database keeps of an account that may be erased, beside its row: what is younger than the erasure goes on.
struct PostgreSQLKept {
  /// The state of mail.
  private(set) var relay: SealedRelay?
  /// The tokens, oldest first.
  private(set) var tokens: [SealedToken] = []

  /// Adds two executions: the states of mail of these accounts, and their tokens.
  static func read(_ hashes: [AccountHash], in batch: inout Batch) {
    let all = PostgreSQLArray(hashes.map(\.bytes))
    batch.append("SELECT hash, status, since, is_private, address FROM siwa.relay WHERE hash = ANY ($1)", all)
    batch.append(
      """
      SELECT hash, kind, client, issued_at, value FROM siwa.token WHERE hash = ANY ($1) ORDER BY issued_at, number
      """, all)
  }

  /// Reads a row of the first of them.
  static func addRelay(
    reading row: borrowing Row, to kept: inout [AccountHash: PostgreSQLKept]
  ) throws(PostgreSQLError) {
    kept[try row.hash(0), default: PostgreSQLKept()].relay = SealedRelay(
      status: try row.choice(1), since: try row.time(2), isPrivate: try row.value(3), address: try row.value(4))
  }

  /// Reads a row of the second.
  static func addToken(
    reading row: borrowing Row, to kept: inout [AccountHash: PostgreSQLKept]
  ) throws(PostgreSQLError) {
    guard let client = ClientID(try row.value(2)) else { throw .unexpectedValue("a token's client") }
    kept[try row.hash(0), default: PostgreSQLKept()].tokens.append(
      SealedToken(kind: try row.choice(1), client: client, issuedAt: try row.time(3), value: try row.value(4)))
  }
}

extension Settlement {
  /// Whether all that is kept of the account may go.
  var erases: Bool {
    changes.contains { change in if case .eraseAccount = change { true } else { false } }
  }
}
