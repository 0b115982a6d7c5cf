import AccountEvents
import SQLite

/// How far erasures are, target by target.
final class SQLiteErasures {
  private let database: Database
  private let writing: Statement
  private let reading: Statement
  private let openReading: Statement
  private let uncoveredReading: Statement
  private let incompleteCount: Statement
  private let progressCount: Statement
  private let discarding: Statement
  private let dueReading: Statement

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    // A new row's number is SQLite's own: one more than the highest. A target keeps its place, as a new number would move its
    // row and touch each index of it. What was discarded meanwhile stays so, unless it was erased after all.
    writing = try database.prepare(
      """
      INSERT INTO erasure_progress (
        event_id, target, hash, state, before, affected, after, detail, at, generation, occurred_at, severity)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (event_id, target) DO UPDATE SET hash = excluded.hash, state = excluded.state,
        before = excluded.before, affected = excluded.affected, after = excluded.after, detail = excluded.detail,
        at = excluded.at, generation = excluded.generation, occurred_at = excluded.occurred_at,
        severity = excluded.severity
      WHERE erasure_progress.state <> 'discarded' OR excluded.state = 'erased'
      """)
    reading = try database.prepare(
      """
      SELECT target, state, before, affected, after, detail, at FROM erasure_progress WHERE event_id = ? ORDER BY number
      """)
    openReading = try database.prepare(
      """
      SELECT step.event_id, step.target, step.hash, step.state, step.detail, step.at, attempt.first_at, attempt.count,
        step.generation
      FROM erasure_progress AS step LEFT JOIN attempt ON attempt.consumer = ?1 AND attempt.event_id = step.event_id
      WHERE step.state IN ('begun', 'failed') AND (step.event_id, step.target) > (?2, ?3)
        AND NOT EXISTS (SELECT 1 FROM ledger WHERE consumer = ?1 AND event_id = step.event_id)
      ORDER BY step.event_id, step.target LIMIT ?4
      """)
    // A step of a version that noted no time or severity covers nothing.
    uncoveredReading = try database.prepare(
      """
      SELECT target FROM erasure_progress AS step
      WHERE event_id = ?1 AND state IN ('begun', 'failed') AND (step.hash NOT IN (?2, ?3) OR NOT EXISTS (
        SELECT 1 FROM erasure_progress AS other
        WHERE other.hash IN (?2, ?3) AND other.target = step.target AND other.occurred_at >= ?4 AND other.severity >= ?5
          AND other.state IN ('erased', 'retained', 'discarded')))
      ORDER BY number
      """)
    incompleteCount = try database.prepare(
      """
      SELECT count(DISTINCT step.event_id) FROM erasure_progress AS step
      WHERE step.state IN ('begun', 'failed')
        AND (step.state = 'failed' OR step.detail <> 'in-progress'
          AND EXISTS (SELECT 1 FROM attempt WHERE consumer = ?1 AND event_id = step.event_id))
        AND NOT EXISTS (SELECT 1 FROM ledger WHERE consumer = ?1 AND event_id = step.event_id)
      """)
    progressCount = try database.prepare(
      """
      SELECT count(DISTINCT step.event_id) FROM erasure_progress AS step
      WHERE step.state IN ('begun', 'failed') AND step.state = 'begun' AND step.detail = 'in-progress'
        AND NOT EXISTS (SELECT 1 FROM ledger WHERE consumer = ?1 AND event_id = step.event_id)
      """)
    discarding = try database.prepare(
      """
      UPDATE erasure_progress SET state = 'discarded', detail = ?3, at = ?4
      WHERE event_id = ?1 AND (?2 = '' OR target = ?2) AND (coalesce(length(?6), 0) = 0 OR hash IN (?6, ?7))
        AND (state IN ('begun', 'failed') OR (?2 <> '' AND state = 'retained' AND substr(detail, -10) <= ?5))
      """)
    dueReading = try database.prepare(
      """
      SELECT event_id, target, hash, detail, at, generation FROM erasure_progress
      WHERE state = 'retained' AND substr(detail, -10) <= ?1 AND (coalesce(length(?2), 0) = 0 OR hash IN (?2, ?6))
        AND (event_id, target) > (?3, ?4)
      ORDER BY event_id, target LIMIT ?5
      """)
  }

  /// Records a step in place of the target's last one, unless that was discarded and this one is not the end.
  func record(_ step: ErasureStep, of event: EventReference, generation: Int64) throws(SQLiteError) {
    try writing.run(
      event.id.text, step.target, event.hash.bytes, step.state.rawValue, step.before.map(Int64.init),
      step.affected.map(Int64.init),
      step.after.map(Int64.init), step.detail, step.time.milliseconds, generation, event.occurredAt.milliseconds,
      Int64(event.weight.severity))
  }

  /// The steps so far.
  func steps(of event: EventID) throws(SQLiteError) -> [ErasureStep] {
    var steps: [ErasureStep] = []
    try reading.forEach(event.text) { row throws(SQLiteError) in
      steps.append(
        ErasureStep(
          target: try row.value(0), state: try row.choice(1), before: try row.count(2), affected: try row.count(3),
          after: try row.count(4), detail: try row.value(5), time: try row.time(6)))
    }
    return steps
  }

  /// What is open, from behind a place on.
  func open(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int, _ hashing: HashChain
  ) throws(SQLiteError) -> [OpenErasure] {
    var open: [OpenErasure] = []
    try openReading.forEach(consumer.text, place?.event.text ?? "", place?.target ?? "", Int64(limit)) {
      row throws(SQLiteError) in
      guard let event = EventID(try row.value(0)) else { throw .malformed("a step of an erasure") }
      let time = try row.time(5)
      open.append(
        OpenErasure(
          OpenErasure.Place(event: event, target: try row.value(1)), account: try row.hash(2, of: 8, hashing),
          state: try row.choice(3),
          cause: try row.value(4), attempts: try row.count(7) ?? 0, since: min(try row.timeIfPresent(6) ?? time, time)))
    }
    return open
  }

  /// What the event's erasure has left open and no weightier one of its account covers.
  func uncoveredTargets(of event: EventReference, _ hashing: HashChain) throws(SQLiteError) -> [String] {
    let hashes = stepHashes(of: event.account, hashing)
    var targets: [String] = []
    try uncoveredReading.forEach(
      event.id.text, hashes.first ?? [], hashes.last ?? [], event.occurredAt.milliseconds, Int64(event.weight.severity)
    ) { row throws(SQLiteError) in targets.append(try row.value(0)) }
    return targets
  }

  /// How many events have something left after an attempt has failed.
  func countOfIncomplete(by consumer: ConsumerName) throws(SQLiteError) -> Int {
    let count: Int64? = try incompleteCount.first(consumer.text) { row throws(SQLiteError) in try row.value(0) }
    return Int(clamping: count ?? 0)
  }

  /// How many events a target is at work on.
  func countInProgress(by consumer: ConsumerName) throws(SQLiteError) -> Int {
    let count: Int64? = try progressCount.first(consumer.text) { row throws(SQLiteError) in try row.value(0) }
    return Int(clamping: count ?? 0)
  }

  /// Closes steps of the event; where `account` is given, its alone.
  func discard(
    _ event: EventID, of account: Account?, target: String?, note: String, at time: Timestamp, _ hashing: HashChain
  ) throws(SQLiteError) -> Int {
    let hashes = account.map { stepHashes(of: $0, hashing) } ?? []
    try discarding.run(
      event.text, target ?? "", note, time.milliseconds, time.day, hashes.first ?? [], hashes.last ?? [])
    return database.changes
  }

  /// The steps retained until that time or an earlier one, from behind a place on.
  func due(
    until time: Timestamp, of account: Account?, after place: OpenErasure.Place?, limit: Int, _ hashing: HashChain
  ) throws(SQLiteError) -> [RetainedStep] {
    var due: [RetainedStep] = []
    let hashes = account.map { stepHashes(of: $0, hashing) } ?? []
    try dueReading.forEach(
      time.day, hashes.last ?? [], place?.event.text ?? "", place?.target ?? "", Int64(limit), hashes.first ?? []
    ) { row throws(SQLiteError) in
      guard let event = EventID(try row.value(0)) else { throw .malformed("a step of an erasure") }
      due.append(
        RetainedStep(
          OpenErasure.Place(event: event, target: try row.value(1)), account: try row.hash(2, of: 5, hashing),
          detail: try row.value(3), time: try row.time(4)))
    }
    return due
  }

  /// What steps of the account stand under: a step moves to the newest hash by itself.
  private func stepHashes(of account: Account, _ hashing: HashChain) -> [[UInt8]] {
    hashing.hashes(of: account).suffix(2).map(\.bytes)
  }
}
