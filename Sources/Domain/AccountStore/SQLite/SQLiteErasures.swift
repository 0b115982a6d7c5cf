import AccountEvents
import SQLite

/// How far erasures are, target by target.
final class SQLiteErasures {
  private let writing: Statement
  private let reading: Statement

  init(_ database: Database) throws(SQLiteError) {
    // What replaces an older row is the latest again.
    writing = try database.prepare(
      """
      INSERT OR REPLACE INTO erasure_step (event_id, target, hash, state, before, affected, after, detail, at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    reading = try database.prepare(
      """
      SELECT target, state, before, affected, after, detail, at FROM erasure_step WHERE event_id = ? ORDER BY number
      """)
  }

  /// Records a step in place of the target's last one.
  func record(_ step: ErasureStep, of event: EventID, _ hash: AccountHash) throws(SQLiteError) {
    try writing.run(
      event.text, step.target, hash.bytes, step.state.rawValue, step.before.map(Int64.init),
      step.affected.map(Int64.init),
      step.after.map(Int64.init), step.detail, step.time.milliseconds)
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
}
