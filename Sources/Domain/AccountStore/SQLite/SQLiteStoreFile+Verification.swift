import AccountEvents
import SQLite

extension SQLiteStoreFile {
  /// Reads everything, as of one moment.
  func verify(_ progress: (StoreProgress) -> Void) throws(AccountStoreError) -> StoreReport {
    progress(StoreProgress(.checking, done: 0, total: 1))
    var report = StoreReport()
    try AccountStoreError.translating { () throws(SQLiteError) in
      try database.prepare("PRAGMA integrity_check(100)").forEach { row throws(SQLiteError) in
        let finding: String = try row.value(0)
        if finding != "ok" { report.note("the file: \(finding)") }
      }
    }
    // Of a damaged file the rest may not be readable.
    guard report.findings.isEmpty else { return report }
    return try snapshot { () throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        try database.prepare("PRAGMA foreign_key_check").forEach { row throws(SQLiteError) in
          report.note("a row of \(try row.value(0, as: String.self)) refers to one that is not there")
        }
        report.tokens = try count(database.prepare("SELECT count(*) FROM token"))
        report.relays = try count(database.prepare("SELECT count(*) FROM mail"))
        report.settled = try count(database.prepare("SELECT count(*) FROM ledger"))
      }
      try openAccounts(&report, progress)
      let waiting = try AccountStoreError.translating { () throws(SQLiteError) in try outbox.first(.max, after: nil) }
      report.note(waiting, with: keys.master)
      try openTransfers(&report, progress)
      let left = keys.state.isMoving ? 0 : try SQLiteHashRotation(self).countOfRemainingNow()
      if left > 0 { report.note("\(left) rows bear a hash under a former key") }
      report.isMoving = keys.state.isMoving
      return report
    }
  }

  private func openAccounts(
    _ report: inout StoreReport, _ progress: (StoreProgress) -> Void
  ) throws(AccountStoreError) {
    let (next, relays, total) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try database.prepare(
          "SELECT hash, team, subject, data_key, master_key_id FROM account WHERE hash > ? ORDER BY hash LIMIT 1000"),
        try SQLiteRelayReader(database),
        try count(database.prepare("SELECT count(*) FROM account"))
      )
    }
    var last: [UInt8] = []
    while true {
      var rows: [SealedAccount] = []
      try AccountStoreError.translating { () throws(SQLiteError) in
        try next.forEach(last) { row throws(SQLiteError) in rows.append(try SealedAccount(reading: row)) }
      }
      progress(StoreProgress(.opening, done: report.accounts, total: max(total, report.accounts)))
      guard let end = rows.last else { return }
      for row in rows {
        do throws(AccountStoreError) { try open(row, relays) } catch {
          report.note("account \(row.hash): \(error.detail)")
        }
      }
      report.accounts += rows.count
      last = end.hash.bytes
    }
  }

  private func openTransfers(
    _ report: inout StoreReport, _ progress: (StoreProgress) -> Void
  ) throws(AccountStoreError) {
    let (plans, total) = try AccountStoreError.translating { () throws(SQLiteError) in
      (try transfers.plans(), try count(database.prepare("SELECT count(*) FROM transfer_user")))
    }
    for row in plans {
      guard let plan = try report.open(row, keys) else { continue }
      var last: Int64 = 0
      while true {
        let rows = try AccountStoreError.translating { () throws(SQLiteError) in
          try transfers.users(of: row.number, in: nil, after: last, limit: 1000)
        }
        guard let end = rows.last else { break }
        report.note(rows, of: plan)
        progress(StoreProgress(.opening, done: report.transferUsers, total: max(total, report.transferUsers)))
        last = end.number
      }
    }
  }

  /// Opens all that is sealed of an account.
  private func open(_ row: SealedAccount, _ relays: SQLiteRelayReader) throws(AccountStoreError) {
    let key = try row.open(with: keys).cipher
    let (tokens, relay) = try AccountStoreError.translating { () throws(SQLiteError) in
      (try accounts.tokens(of: row.hash), try relays.facts(of: row.hash))
    }
    for token in tokens { _ = try token.opened(of: row.hash, with: key) }
    _ = try relay.knowledge(of: row.hash, with: keys)
  }

  private func count(_ statement: Statement) throws(SQLiteError) -> Int {
    let count: Int64? = try statement.first { row throws(SQLiteError) in try row.value(0) }
    return Int(clamping: count ?? 0)
  }
}

extension SealedAccount {
  /// Reads a row: hash, team, subject, data key, the master key's id.
  init(reading row: borrowing Row) throws(SQLiteError) {
    self.init(
      hash: try row.hash(0), team: try row.value(1), subject: try row.value(2),
      key: AccountFacts.WrappedKey(bytes: try row.value(3), masterKeyID: try row.value(4)))
  }
}
