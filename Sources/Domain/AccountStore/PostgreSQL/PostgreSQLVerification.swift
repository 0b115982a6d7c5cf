import AccountEvents
import EventLoop
import PostgreSQL

/// Reads everything, within one transaction, as of one moment.
@Loop
final class PostgreSQLVerification {
  private static let page: Int64 = 1000

  private let keys: StoreKeys
  private let connection: Connection
  private var report = StoreReport()

  init(_ keys: StoreKeys, _ connection: Connection) { (self.keys, self.connection) = (keys, connection) }

  func run(_ progress: (StoreProgress) -> Void) async throws -> StoreReport {
    report.tokens = try await count("SELECT count(*) FROM siwa.token")
    report.relays = try await count("SELECT count(*) FROM siwa.relay")
    report.settled = try await count("SELECT count(*) FROM siwa.ledger")
    try await openAccounts(progress)
    let waiting = try await connection.query(
      "SELECT event_id, account, written_at, master_key_id, record FROM siwa.outbox ORDER BY number",
      limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in try SealedOutboxRecord(reading: row) }
    report.note(waiting, with: keys.master)
    try await openTransfers(progress)
    report.isMoving = keys.state.isMoving
    let left = report.isMoving ? 0 : try await connection.count(before: keys.generation)
    if left > 0 { report.note("\(left) rows bear a hash under a former key") }
    return report
  }

  private func openAccounts(_ progress: (StoreProgress) -> Void) async throws {
    let total = try await count("SELECT count(*) FROM siwa.account")
    var last: [UInt8] = []
    while true {
      let rows = try await connection.query(
        """
        SELECT hash, team, subject, data_key, master_key_id FROM siwa.account WHERE hash > $1 ORDER BY hash LIMIT $2
        """, last, Self.page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        SealedAccount(
          hash: try row.hash(0), team: try row.value(1), subject: try row.value(2),
          key: AccountFacts.WrappedKey(bytes: try row.value(3), masterKeyID: try row.value(4)))
      }
      progress(StoreProgress(.opening, done: report.accounts, total: max(total, report.accounts)))
      guard let end = rows.last else { return }
      try await open(rows)
      report.accounts += rows.count
      last = end.hash.bytes
    }
  }

  private func openTransfers(_ progress: (StoreProgress) -> Void) async throws {
    let total = try await count("SELECT count(*) FROM siwa.transfer_user")
    for row in try await connection.transferPlans() {
      guard let plan = try report.open(row, keys) else { continue }
      var last: Int64 = 0
      while true {
        let rows = try await connection.transferUsers(of: row.number, in: nil, after: last, limit: Int(Self.page))
        guard let end = rows.last else { break }
        report.note(rows, of: plan)
        progress(StoreProgress(.opening, done: report.transferUsers, total: max(total, report.transferUsers)))
        last = end.number
      }
    }
  }

  /// Opens all that is sealed of these accounts: of all at once, and where that fails, of each, to find which it is.
  private func open(_ rows: [SealedAccount]) async throws {
    do {
      for row in rows { _ = try row.open(with: keys) }
      _ = try await PostgreSQLTokens.read(of: rows.map(\.hash), keys, with: connection)
      _ = try await PostgreSQLRelays.knowledge(of: rows.map(\.hash), keys, with: connection)
    } catch let error as AccountStoreError {
      guard rows.count > 1 else {
        report.note("account \(rows[0].hash): \(error.detail)")
        return
      }
      for row in rows { try await open([row]) }
    }
  }

  private func count(_ sql: StaticString) async throws -> Int {
    let count: Int64? = try await connection.first(sql) { row throws(PostgreSQLError) in try row.value(0) }
    return Int(clamping: count ?? 0)
  }
}
