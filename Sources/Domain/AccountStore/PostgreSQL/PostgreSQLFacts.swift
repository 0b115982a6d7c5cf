import AccountEvents
import PostgreSQL

/// How what bears on events and accounts is read.
enum PostgreSQLFacts {
  /// One row for each event, in their order, in one statement: as of one moment.
  private static let reading: StaticString = """
    SELECT
      ledger.at, ledger.outcome, ledger.detail, ledger.topic, ledger.partition, ledger."offset",
      EXISTS (
        SELECT FROM siwa.fence WHERE fence.consumer = event.consumer AND fence.hash = event.hash
          AND fence.severity >= event.severity AND (fence.at, fence.tie) >= (event.at, event.tie)),
      attempt.count, attempt.first_at,
      data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
    FROM unnest($1, $2, $3, $4, $5, $6) WITH ORDINALITY AS event (consumer, id, hash, severity, at, tie, position)
      LEFT JOIN siwa.ledger ON ledger.consumer = event.consumer AND ledger.event_id = event.id
      LEFT JOIN siwa.attempt ON attempt.consumer = event.consumer AND attempt.event_id = event.id
      LEFT JOIN siwa.account ON account.hash = event.hash
      LEFT JOIN siwa.erasure_fence AS erasure ON erasure.hash = event.hash
    ORDER BY event.position
    """

  /// Adds the reading of what bears on these events.
  static func read(_ events: [(event: EventReference, consumer: ConsumerName)], in batch: inout Batch) {
    batch.append(
      reading, PostgreSQLArray(events.map(\.consumer.text)), PostgreSQLArray(events.map(\.event.id.text)),
      PostgreSQLArray(events.map(\.event.hash.bytes)), PostgreSQLArray(events.map { Int64($0.event.weight.severity) }),
      PostgreSQLArray(events.map(\.event.occurredAt.milliseconds)),
      PostgreSQLArray(events.map { Int64($0.event.weight.tie) }))
  }

  /// Adds two executions: the states of mail of these accounts, and their tokens.
  static func readKept(_ hashes: [AccountHash], in batch: inout Batch) {
    let all = PostgreSQLArray(hashes.map(\.bytes))
    batch.append("SELECT status, since, is_private, address, hash FROM siwa.relay WHERE hash = ANY ($1)", all)
    batch.append(
      """
      SELECT kind, client, issued_at, value, hash, claimed_at, validated_at, invalid_at FROM siwa.token
      WHERE hash = ANY ($1) ORDER BY issued_at, number
      """, all)
  }
}

extension EventFacts {
  /// Reads a row.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    self.init(
      entry: try LedgerEntry(reading: row), isOutweighed: try row.value(6),
      attempts: FailedAttempts(count: try row.count(7) ?? 0, since: try row.timeIfPresent(8)),
      account: try AccountFacts(reading: row, from: 9))
  }
}

extension LedgerEntry {
  /// Reads time, outcome, detail and origin of a row's first columns; nil where there are none.
  fileprivate init?(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let at = try row.timeIfPresent(0) else { return nil }
    self.init(
      at: at, outcome: try row.value(1), detail: try row.value(2),
      origin: EventOrigin(
        topic: try row.value(3), partition: Int32(clamping: try row.value(4, as: Int64.self)),
        offset: try row.value(5)))
  }
}

extension AccountFacts {
  /// Reads key, sign-in and erasures from six columns.
  init(reading row: borrowing Row, from column: Int) throws(PostgreSQLError) {
    if let bytes = try row.value(column, as: [UInt8]?.self) {
      key = WrappedKey(bytes: bytes, masterKeyID: try row.value(column + 1))
    }
    signedInAt = try row.timeIfPresent(column + 2)
    guard let at = try row.timeIfPresent(column + 3) else { return }
    erasure = ErasureFence(at: at, isFinal: try row.value(column + 4))
    erasureSignedInAt = try row.timeIfPresent(column + 5)
  }
}

extension SealedRelay {
  /// Reads a state of mail from a row's first columns; nil where there is none.
  init?(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let since = try row.timeIfPresent(1) else { return nil }
    self.init(
      status: try row.choice(0), since: since, isPrivate: try row.value(2), address: try row.value(3))
  }
}

extension SealedToken {
  /// Reads a token from a row's first columns.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let client = ClientID(try row.value(1)) else { throw .unexpectedValue("a token's client") }
    self.init(kind: try row.choice(0), client: client, issuedAt: try row.time(2), value: try row.value(3))
  }
}
