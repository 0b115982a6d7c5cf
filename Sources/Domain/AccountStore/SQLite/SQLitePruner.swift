import AccountEvents
import SQLite

/// Finds and forgets what was settled before a moment: pages of rows are looked for while others write, and deleted in
/// transactions of their own. The ledger's rows never change; of the steps, those alone are deleted that have ended by then.
final class SQLitePruner {
  private struct AttemptPlace {
    var consumer = ""
    var event = ""
  }

  private let file: SQLiteStoreFile
  private let time: Timestamp
  private let eraser: ConsumerName
  private let erasures: Statement
  private let ledger: Statement
  private let attempts: Statement
  private let deletions: Statement
  private let stepRemoval: Statement
  private let ledgerRemoval: Statement
  private let attemptRemoval: Statement
  private let deletionRemoval: Statement

  /// A pruner of what was settled before `time`; `eraser` is the consumer that the steps of erasures are of.
  init(_ file: SQLiteStoreFile, before time: Timestamp, eraser: ConsumerName) throws(AccountStoreError) {
    (self.file, self.time, self.eraser) = (file, time, eraser)
    let database = file.database
    (deletions, deletionRemoval) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        // Answered for as long as the ledger says what was done.
        try database.prepare(
          """
          SELECT event_id FROM deletion WHERE event_id > ?1
            AND (SELECT at FROM ledger WHERE consumer = ?2 AND event_id = deletion.event_id) < ?3
            AND NOT EXISTS (
              SELECT 1 FROM erasure_progress
              WHERE event_id = deletion.event_id AND state NOT IN ('erased', 'discarded'))
          ORDER BY event_id LIMIT ?4
          """),
        try database.prepare("DELETE FROM deletion WHERE event_id = ?")
      )
    }
    (erasures, ledger, attempts, stepRemoval, ledgerRemoval, attemptRemoval) = try AccountStoreError.translating {
      () throws(SQLiteError) in
      (
        // An erasure is over once it is settled: until then its event may come again, and goes on where it was.
        try database.prepare(
          """
          SELECT event_id, count(*) FROM erasure_progress AS step WHERE event_id > ?1 GROUP BY event_id
          HAVING sum(state NOT IN ('erased', 'discarded')) = 0
            AND (SELECT at FROM ledger WHERE consumer = ?2 AND event_id = step.event_id) < ?3
          ORDER BY event_id LIMIT ?4
          """),
        try database.prepare(
          """
          SELECT rowid FROM ledger WHERE rowid > ?1 AND at < ?2
            AND NOT EXISTS (
              SELECT 1 FROM erasure_progress
              WHERE event_id = ledger.event_id AND state NOT IN ('erased', 'discarded'))
          ORDER BY rowid LIMIT ?3
          """),
        try database.prepare(
          """
          SELECT consumer, event_id FROM attempt WHERE (consumer, event_id) > (?1, ?2) AND last_at < ?3
            AND NOT EXISTS (
              SELECT 1 FROM erasure_progress
              WHERE event_id = attempt.event_id AND state NOT IN ('erased', 'discarded'))
          ORDER BY consumer, event_id LIMIT ?4
          """),
        try database.prepare("DELETE FROM erasure_progress WHERE event_id = ? AND state IN ('erased', 'discarded')"),
        try database.prepare("DELETE FROM ledger WHERE rowid = ?"),
        try database.prepare("DELETE FROM attempt WHERE consumer = ? AND event_id = ? AND last_at < ?")
      )
    }
  }

  /// Deletes all of it, or only counts it; calls `each` after each page.
  func run(
    isRehearsal: Bool, each: (StorePruning) -> Void
  ) throws(AccountStoreError) -> StorePruning {
    var pruning = StorePruning()
    // What the ledger says of an erasure decides about its deletion and its steps: those go first.
    var event = ""
    while true {
      let page = try read { () throws(SQLiteError) in try deletions(after: event) }
      guard let last = page.last else { break }
      pruning.deletions += page.count
      if !isRehearsal { try delete { () throws(SQLiteError) in for event in page { try deletionRemoval.run(event) } } }
      event = last
      each(pruning)
    }
    event = ""
    while true {
      let page = try read { () throws(SQLiteError) in try erasures(after: event) }
      guard let last = page.last else { break }
      pruning.steps += page.reduce(0) { $0 + $1.steps }
      if !isRehearsal {
        try delete { () throws(SQLiteError) in for (event, _) in page { try stepRemoval.run(event) } }
      }
      event = last.event
      each(pruning)
    }
    var row = Int64.min
    while true {
      let page = try read { () throws(SQLiteError) in try settled(after: row) }
      guard let last = page.last else { break }
      pruning.settled += page.count
      if !isRehearsal { try delete { () throws(SQLiteError) in for row in page { try ledgerRemoval.run(row) } } }
      row = last
      each(pruning)
    }
    var place = AttemptPlace()
    while true {
      let page = try read { () throws(SQLiteError) in try attempts(after: place) }
      guard let last = page.last else { return pruning }
      pruning.attempts += page.count
      if !isRehearsal {
        try delete { () throws(SQLiteError) in
          for place in page { try attemptRemoval.run(place.consumer, place.event, time.milliseconds) }
        }
      }
      place = last
      each(pruning)
    }
  }

  private func erasures(after event: String) throws(SQLiteError) -> [(event: String, steps: Int)] {
    var page: [(event: String, steps: Int)] = []
    try erasures.forEach(event, eraser.text, time.milliseconds, StorePruning.page) { row throws(SQLiteError) in
      page.append((try row.value(0), try row.count(1) ?? 0))
    }
    return page
  }

  private func deletions(after event: String) throws(SQLiteError) -> [String] {
    var page: [String] = []
    try deletions.forEach(event, eraser.text, time.milliseconds, StorePruning.page) { row throws(SQLiteError) in
      page.append(try row.value(0))
    }
    return page
  }

  private func settled(after row: Int64) throws(SQLiteError) -> [Int64] {
    var page: [Int64] = []
    try ledger.forEach(row, time.milliseconds, StorePruning.page) { row throws(SQLiteError) in
      page.append(try row.value(0))
    }
    return page
  }

  private func attempts(after place: AttemptPlace) throws(SQLiteError) -> [AttemptPlace] {
    var page: [AttemptPlace] = []
    try attempts.forEach(place.consumer, place.event, time.milliseconds, StorePruning.page) {
      row throws(SQLiteError) in page.append(AttemptPlace(consumer: try row.value(0), event: try row.value(1)))
    }
    return page
  }

  private func read<Value>(_ body: () throws(SQLiteError) -> Value) throws(AccountStoreError) -> Value {
    try AccountStoreError.translating(body)
  }

  private func delete(_ body: () throws(SQLiteError) -> Void) throws(AccountStoreError) {
    try file.writePage { () throws(AccountStoreError) in try AccountStoreError.translating(body) }
  }
}
