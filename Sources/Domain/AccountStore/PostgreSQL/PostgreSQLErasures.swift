import AccountEvents
import PostgreSQL

/// How far erasures are, target by target.
enum PostgreSQLErasures {
  /// Records a step in place of the target's last one. What was discarded meanwhile stays so, unless it was erased after
  /// all.
  static func record(_ step: ErasureStep, of event: EventReference, generation: Int64, in batch: inout Batch) {
    batch.append(
      """
      INSERT INTO siwa.erasure_step (
        event_id, target, hash, state, before, affected, after, detail, at, generation, occurred_at, severity)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      ON CONFLICT (event_id, target) DO UPDATE SET hash = excluded.hash, state = excluded.state,
        before = excluded.before, affected = excluded.affected, after = excluded.after, detail = excluded.detail,
        at = excluded.at, generation = excluded.generation, occurred_at = excluded.occurred_at,
        severity = excluded.severity
      WHERE erasure_step.state <> 'discarded' OR excluded.state = 'erased'
      """, event.id.text, step.target, event.hash.bytes, step.state.rawValue, step.before.map(Int64.init),
      step.affected.map(Int64.init), step.after.map(Int64.init), step.detail, step.time.milliseconds, generation,
      event.occurredAt.milliseconds, Int64(event.weight.severity))
  }

  /// The steps so far, of each event.
  static func steps(of events: [EventID], with connection: Connection) async throws -> [[ErasureStep]] {
    var batch = Batch()
    for event in events {
      batch.append(
        """
        SELECT target, state, before, affected, after, detail, at FROM siwa.erasure_step WHERE event_id = $1
        ORDER BY number
        """, event.text)
    }
    var steps = Array(repeating: [ErasureStep](), count: events.count)
    try await connection.run(batch) { execution, row throws(PostgreSQLError) in
      steps[execution].append(
        ErasureStep(
          target: try row.value(0), state: try row.choice(1), before: try row.count(2), affected: try row.count(3),
          after: try row.count(4), detail: try row.value(5), time: try row.time(6)))
    }
    return steps
  }

  /// What is open, from behind a place on.
  static func open(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int, _ keys: StoreKeys,
    with connection: Connection
  ) async throws -> [OpenErasure] {
    var batch = Batch()
    batch.append(
      """
      SELECT step.event_id, step.target, step.hash, step.state, step.detail, step.at, attempt.first_at, attempt.count,
        step.generation
      FROM siwa.erasure_step AS step
        LEFT JOIN siwa.attempt ON attempt.consumer = $1 AND attempt.event_id = step.event_id
      WHERE step.state IN ('begun', 'failed') AND (step.event_id, step.target) > ($2, $3)
        AND NOT EXISTS (SELECT FROM siwa.ledger WHERE consumer = $1 AND ledger.event_id = step.event_id)
      ORDER BY step.event_id, step.target LIMIT $4
      """, consumer.text, place?.event.text ?? "", place?.target ?? "", Int64(limit))
    var open: [(account: GenerationHash, erasure: OpenErasure)] = []
    try await connection.run(batch, holding: keys) { _, row throws(PostgreSQLError) in
      guard let event = EventID(try row.value(0)) else { throw .unexpectedValue("a step of an erasure") }
      let (account, time) = (try row.hash(2, of: 8), try row.time(5))
      open.append(
        (
          account,
          OpenErasure(
            OpenErasure.Place(event: event, target: try row.value(1)), account: account.hash,
            state: try row.choice(3), cause: try row.value(4), attempts: try row.count(7) ?? 0,
            since: min(try row.timeIfPresent(6) ?? time, time))
        ))
    }
    return try open.map { try $0.erasure.about($0.account.newest(in: keys.hashing)) }
  }

  /// What each event's erasure has left open and no weightier one of its account covers. A step of a version that noted no
  /// time or severity covers nothing.
  static func uncoveredTargets(
    of events: [EventReference], _ keys: StoreKeys, with connection: Connection
  ) async throws -> [[String]] {
    var batch = Batch()
    for event in events {
      batch.append(
        """
        SELECT target FROM siwa.erasure_step AS step
        WHERE event_id = $1 AND state IN ('begun', 'failed') AND (step.hash <> ALL ($2) OR NOT EXISTS (
          SELECT FROM siwa.erasure_step AS other
          WHERE other.hash = ANY ($2) AND other.target = step.target AND other.occurred_at >= $3 AND other.severity >= $4
            AND other.state IN ('erased', 'retained', 'discarded')))
        ORDER BY number
        """, event.id.text, stepHashes(of: event.account, keys), event.occurredAt.milliseconds,
        Int64(event.weight.severity)
      )
    }
    var targets = Array(repeating: [String](), count: events.count)
    try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
      targets[execution].append(try row.value(0))
    }
    return targets
  }

  /// How many events have something left after an attempt has failed.
  static func countOfIncomplete(by consumer: ConsumerName, with connection: Connection) async throws -> Int {
    let count = try await connection.first(
      """
      SELECT count(DISTINCT step.event_id) FROM siwa.erasure_step AS step
      WHERE step.state IN ('begun', 'failed')
        AND (step.state = 'failed' OR step.detail <> 'in-progress'
          AND EXISTS (SELECT FROM siwa.attempt WHERE consumer = $1 AND attempt.event_id = step.event_id))
        AND NOT EXISTS (SELECT FROM siwa.ledger WHERE consumer = $1 AND ledger.event_id = step.event_id)
      """, consumer.text
    ) { row throws(PostgreSQLError) in try row.value(0, as: Int64.self) }
    return Int(clamping: count ?? 0)
  }

  /// How many events a target is at work on.
  static func countInProgress(by consumer: ConsumerName, with connection: Connection) async throws -> Int {
    let count = try await connection.first(
      """
      SELECT count(DISTINCT step.event_id) FROM siwa.erasure_step AS step
      WHERE step.state IN ('begun', 'failed') AND step.state = 'begun' AND step.detail = 'in-progress'
        AND NOT EXISTS (SELECT FROM siwa.ledger WHERE consumer = $1 AND ledger.event_id = step.event_id)
      """, consumer.text
    ) { row throws(PostgreSQLError) in try row.value(0, as: Int64.self) }
    return Int(clamping: count ?? 0)
  }

  /// Closes steps of the event; where `account` is given, its alone.
  static func discard(
    _ event: EventID, of account: Account?, target: String?, note: String, at time: Timestamp, _ keys: StoreKeys,
    with connection: Connection
  ) async throws -> Int {
    var batch = Batch.locked
    batch.append(
      """
      UPDATE siwa.erasure_step SET state = 'discarded', detail = $3, at = $4
      WHERE event_id = $1 AND ($2 = '' OR target = $2) AND (cardinality($6) = 0 OR hash = ANY ($6))
        AND (state IN ('begun', 'failed') OR ($2 <> '' AND state = 'retained' AND right(detail, 10) <= $5))
      """, event.text, target ?? "", note, time.milliseconds, time.day,
      account.map { stepHashes(of: $0, keys) } ?? PostgreSQLArray([]))
    return try await connection.run(locked: batch, keys) { _, _ throws(PostgreSQLError) in }.last ?? 0
  }

  /// The steps retained until that time or an earlier one, from behind a place on.
  static func due(
    until time: Timestamp, of account: Account?, after place: OpenErasure.Place?, limit: Int, _ keys: StoreKeys,
    with connection: Connection
  ) async throws -> [RetainedStep] {
    let hashes = account.map { stepHashes(of: $0, keys) } ?? PostgreSQLArray([])
    var batch = Batch()
    batch.append(
      """
      SELECT event_id, target, hash, detail, at, generation FROM siwa.erasure_step
      WHERE state = 'retained' AND right(detail, 10) <= $1 AND (cardinality($2) = 0 OR hash = ANY ($2))
        AND (event_id, target) > ($3, $4)
      ORDER BY event_id, target LIMIT $5
      """, time.day, hashes, place?.event.text ?? "", place?.target ?? "", Int64(limit))
    var due: [(account: GenerationHash, step: RetainedStep)] = []
    try await connection.run(batch, holding: keys) { _, row throws(PostgreSQLError) in
      guard let event = EventID(try row.value(0)) else { throw .unexpectedValue("a step of an erasure") }
      let account = try row.hash(2, of: 5)
      due.append(
        (
          account,
          RetainedStep(
            OpenErasure.Place(event: event, target: try row.value(1)), account: account.hash,
            detail: try row.value(3), time: try row.time(4))
        ))
    }
    return try due.map { try $0.step.about($0.account.newest(in: keys.hashing)) }
  }

  /// What steps of the account stand under: a step moves to the newest hash by itself.
  private static func stepHashes(of account: Account, _ keys: StoreKeys) -> PostgreSQLArray<[UInt8]> {
    PostgreSQLArray(keys.hashing.hashes(of: account).suffix(2).map(\.bytes))
  }
}
