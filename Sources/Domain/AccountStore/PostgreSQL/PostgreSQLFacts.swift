import AccountEvents
import PostgreSQL

/// What the database knows that bears on an event, and of its account.
struct PostgreSQLFacts {
  /// For the judgement.
  let event: EventFacts
  /// The account's row.
  let account: (signedInAt: Timestamp?, dataKey: [UInt8], masterKeyID: String)?
  /// What the account's erasures have left.
  let erasure: (fence: ErasureFence, signedInAt: Timestamp?)?

  /// One row for each event, in their order, in one statement: as of one moment.
  private static let reading: StaticString = """
    SELECT
      ledger.event_id IS NOT NULL,
      EXISTS (
        SELECT FROM siwa.fence WHERE fence.consumer = event.consumer AND fence.hash = event.hash
          AND fence.severity >= event.severity AND (fence.at, fence.tie) >= (event.at, event.tie)),
      attempt.count, account.signed_in_at, account.data_key, account.master_key_id,
      erasure.at, erasure.is_final, erasure.signed_in_at
    FROM unnest($1, $2, $3, $4, $5, $6) WITH ORDINALITY AS event (consumer, id, hash, severity, at, tie, position)
      LEFT JOIN siwa.ledger ON ledger.consumer = event.consumer AND ledger.event_id = event.id
      LEFT JOIN siwa.attempt ON attempt.consumer = event.consumer AND attempt.event_id = event.id
      LEFT JOIN siwa.account ON account.hash = event.hash
      LEFT JOIN siwa.erasure ON erasure.hash = event.hash
    ORDER BY event.position
    """

  /// Adds the reading of what bears on these events.
  static func read(
    _ events: [(event: EventReference, consumer: ConsumerName, hash: AccountHash)], in batch: inout Batch
  ) {
    batch.append(
      reading, PostgreSQLArray(events.map(\.consumer.text)), PostgreSQLArray(events.map(\.event.id.text)),
      PostgreSQLArray(events.map(\.hash.bytes)), PostgreSQLArray(events.map { Int64($0.event.weight.severity) }),
      PostgreSQLArray(events.map(\.event.occurredAt.milliseconds)),
      PostgreSQLArray(events.map { Int64($0.event.weight.tie) }))
  }

  /// Reads a row.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    let signedInAt = try row.timeIfPresent(3)
    account = try row.value(4, as: [UInt8]?.self) == nil ? nil : (signedInAt, try row.value(4), try row.value(5))
    let before = try row.timeIfPresent(8)
    if let at = try row.timeIfPresent(6) {
      erasure = (ErasureFence(at: at, isFinal: try row.value(7)), before)
    } else {
      erasure = nil
    }
    event = EventFacts(
      isSettled: try row.value(0), isOutweighed: try row.value(1),
      signedInAt: [signedInAt, before].compactMap(\.self).max(), erasure: erasure?.fence,
      attempts: try row.count(2) ?? 0)
  }
}
