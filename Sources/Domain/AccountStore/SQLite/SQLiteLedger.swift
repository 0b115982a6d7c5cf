import AccountEvents
import SQLite

/// What consumers have done: the ledger, the fences, the attempts that failed, and how far all of it is announced.
final class SQLiteLedger {
  /// Of how many events a statement reads what bears on them.
  private static let atOnce = 16

  private let database: Database
  private let reading: Statement
  private let insertion: Statement
  private let highestFence: Statement
  private let fence: Statement
  private let attempt: Statement
  private let success: Statement
  private let claim: Statement
  private let mark: Statement

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    reading = try database.prepare(
      """
      WITH event (place, consumer, id, hash, severity, at, tie) AS (VALUES
        (0, ?, ?, ?, ?, ?, ?), (1, ?, ?, ?, ?, ?, ?), (2, ?, ?, ?, ?, ?, ?), (3, ?, ?, ?, ?, ?, ?),
        (4, ?, ?, ?, ?, ?, ?), (5, ?, ?, ?, ?, ?, ?), (6, ?, ?, ?, ?, ?, ?), (7, ?, ?, ?, ?, ?, ?),
        (8, ?, ?, ?, ?, ?, ?), (9, ?, ?, ?, ?, ?, ?), (10, ?, ?, ?, ?, ?, ?), (11, ?, ?, ?, ?, ?, ?),
        (12, ?, ?, ?, ?, ?, ?), (13, ?, ?, ?, ?, ?, ?), (14, ?, ?, ?, ?, ?, ?), (15, ?, ?, ?, ?, ?, ?))
      SELECT ledger.at, ledger.outcome, ledger.detail, ledger.topic, ledger.partition, ledger."offset",
        coalesce(
          mail.fence_consumer = event.consumer AND mail.fence_severity >= event.severity
            AND (mail.fence_at, mail.fence_tie) >= (event.at, event.tie), 0)
        OR EXISTS (
          SELECT 1 FROM event_fence AS fence
          WHERE fence.consumer = event.consumer AND fence.hash = event.hash AND fence.severity >= event.severity
            AND (fence.at, fence.tie) >= (event.at, event.tie)),
        attempt.count, attempt.first_at,
        account.data_key, account.master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
        event.place
      FROM event
        LEFT JOIN ledger ON ledger.consumer = event.consumer AND ledger.event_id = event.id
        LEFT JOIN attempt ON attempt.consumer = event.consumer AND attempt.event_id = event.id
        LEFT JOIN account ON account.hash = event.hash
        LEFT JOIN erasure_fence AS erasure ON erasure.hash = event.hash
        LEFT JOIN mail ON mail.hash = event.hash
      WHERE event.id IS NOT NULL
      """)
    insertion = try database.prepare(
      """
      INSERT INTO ledger (consumer, event_id, hash, outcome, detail, at, topic, partition, "offset", generation)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    highestFence = try database.prepare(
      "REPLACE INTO event_fence (consumer, hash, severity, at, tie, generation) VALUES (?, ?, ?, ?, ?, ?)")
    fence = try database.prepare(
      """
      INSERT INTO event_fence (consumer, hash, severity, at, tie, generation) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET at = excluded.at, tie = excluded.tie WHERE (excluded.at, excluded.tie) > (at, tie)
      """)
    attempt = try database.prepare(
      """
      INSERT INTO attempt (consumer, event_id, count, first_at, last_at, cause) VALUES (?1, ?2, 1, ?3, ?3, ?4)
      ON CONFLICT DO UPDATE
        SET count = count + 1, first_at = min(first_at, excluded.first_at), last_at = excluded.last_at,
          cause = excluded.cause
      RETURNING count, first_at
      """)
    success = try database.prepare("DELETE FROM attempt WHERE consumer = ? AND event_id = ?")
    claim = try database.prepare(
      """
      INSERT INTO announced (consumer, topic, partition, claim, "offset", beyond)
      VALUES (?1, ?2, ?3, 1, coalesce(?4, 0), '')
      ON CONFLICT DO UPDATE SET claim = claim + 1, "offset" = coalesce(?4, "offset"), beyond = iif(?4 IS NULL, beyond, '')
      RETURNING claim, "offset", beyond
      """)
    mark = try database.prepare(
      """
      UPDATE announced SET "offset" = max("offset", ?5), beyond = iif("offset" <= ?5, ?6, beyond)
      WHERE consumer = ?1 AND topic = ?2 AND partition = ?3 AND claim = ?4
      """)
  }

  /// What bears on each event. A run of a statement costs about as much as what it looks up for one of them, and what it
  /// looks them up with stays open for as long as it runs: so it looks up what bears on several.
  func facts(
    of events: some RandomAccessCollection<(event: EventReference, consumer: ConsumerName)>
  ) throws(SQLiteError) -> [EventFacts] {
    var facts: [EventFacts?] = .init(repeating: nil, count: events.count)
    var (rest, first) = (events[...], 0)
    while !rest.isEmpty {
      let some = rest.prefix(Self.atOnce)
      try reading.forEach { bindings throws(SQLiteError) in
        for (event, consumer) in some {
          try bindings.add(
            consumer.text, event.id.text, event.hash.bytes, Int64(event.weight.severity), event.occurredAt.milliseconds,
            Int64(event.weight.tie))
        }
      } row: { row throws(SQLiteError) in
        // SQLite may return the rows in any order.
        guard let place = try row.count(15), (0..<some.count).contains(place) else {
          throw .malformed("a row for no event")
        }
        facts[first + place] = EventFacts(
          entry: try LedgerEntry(reading: row), isOutweighed: try row.value(6, as: Int64.self) == 1,
          attempts: FailedAttempts(count: try row.count(7) ?? 0, since: try row.timeIfPresent(8)),
          account: try AccountFacts(reading: row, from: 9))
      }
      rest = rest.dropFirst(Self.atOnce)
      first += Self.atOnce
    }
    return try facts.map { facts throws(SQLiteError) in
      guard let facts else { throw .malformed("a row that is always there") }
      return facts
    }
  }

  /// Writes down what became of events, and what they make void. `generation` is that of their accounts' hashes.
  func write(
    _ judged: JudgedSettlements, of settlements: [Settlement], at time: Timestamp, generation: Int64
  ) throws(SQLiteError) {
    for row in judged.ledger {
      let (event, consumer) = (settlements[row.index].event, settlements[row.index].consumer)
      try insertion.run(
        consumer.text, event.id.text, event.hash.bytes, row.outcome, row.detail, time.milliseconds,
        event.origin.topic, Int64(event.origin.partition), event.origin.offset, generation)
      if row.hadAttempts { try success.run(consumer.text, event.id.text) }
    }
    for account in judged.accounts { try raiseFences(of: account, generation: generation) }
  }

  /// Makes void what the events of an account outweigh, but for the fence that stands with its state of mail.
  func raiseFences(of account: ChangedAccount, generation: Int64) throws(SQLiteError) {
    let written = account.fenceOfMail
    for row in account.fences where row != written {
      try (row.isHighest ? highestFence : fence).run(
        row.consumer.text, account.hash.bytes, Int64(row.severity), row.at.milliseconds, Int64(row.tie), generation)
    }
  }

  /// Counts one more failure.
  func count(_ failure: FailedAttempt) throws(SQLiteError) -> FailedAttempts {
    let attempts = try attempt.first(
      failure.consumer.text, failure.event.id.text, failure.time.milliseconds, failure.cause
    ) { row throws(SQLiteError) in FailedAttempts(count: try row.count(0) ?? 0, since: try row.time(1)) }
    guard let attempts else { throw .malformed("a row that is always there") }
    return attempts
  }

  /// Claims a partition.
  func claim(_ claim: PartitionClaim, for consumer: ConsumerName) throws(SQLiteError) -> AnnouncedMark {
    let mark = try self.claim.first(
      consumer.text, claim.partition.topic, Int64(claim.partition.partition), claim.beginsAnewAt
    ) { row throws(SQLiteError) in
      AnnouncedMark(
        consumer: consumer, partition: claim.partition, claim: try row.value(0), offset: try row.value(1),
        beyond: try row.value(2))
    }
    guard let mark else { throw .malformed("a row that is always there") }
    return mark
  }

  /// Raises a mark; says whether its claim is the last one.
  func raise(_ raised: AnnouncedMark) throws(SQLiteError) -> Bool {
    try mark.run(
      raised.consumer.text, raised.partition.topic, Int64(raised.partition.partition), raised.claim, raised.offset,
      raised.beyond)
    return database.changes > 0
  }
}

extension LedgerEntry {
  /// Reads time, outcome, detail and origin of a row's first columns; nil where there are none.
  init?(reading row: borrowing Row) throws(SQLiteError) {
    guard let at = try row.timeIfPresent(0) else { return nil }
    self.init(
      at: at, outcome: try row.value(1), detail: try row.value(2),
      origin: EventOrigin(
        topic: try row.value(3), partition: Int32(clamping: try row.value(4, as: Int64.self)),
        offset: try row.value(5)))
  }
}
