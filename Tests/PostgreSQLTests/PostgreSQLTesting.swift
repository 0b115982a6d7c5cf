import EventLoop
import PostgreSQL
import Synchronization
import TestSupport
import Testing

/// A pool whose limits no test reaches unless it lowers them, and what a server said to it.
@Loop
final class TestPool {
  let pool: ConnectionPool
  nonisolated let notices = Notices()

  init(
    _ connectionInfo: String, size: Int = 4, connectTimeout: Duration = .seconds(300),
    leaseTimeout: Duration = .seconds(300), statementTimeout: Duration = .seconds(300),
    responseTimeout: Duration = .seconds(600), attempts: Int = 5, longestLife: Duration = .seconds(3600),
    longestIdle: Duration = .seconds(3600)
  ) throws {
    var configuration = try PostgreSQLConfiguration(
      connectionInfo: connectionInfo, size: size, connectTimeout: connectTimeout, leaseTimeout: leaseTimeout,
      statementTimeout: statementTimeout, responseTimeout: responseTimeout, defaultIsolation: .readCommitted,
      transactionAttempts: attempts)
    (configuration.longestLife, configuration.longestIdle) = (longestLife, longestIdle)
    pool = ConnectionPool(configuration, jitter: { 0.5 }, log: { [notices] in notices.append($0) })
  }

  /// A pool for a new database of the shared server.
  static func fresh(size: Int = 4, statementTimeout: Duration = .seconds(300), attempts: Int = 5) async throws
    -> TestPool
  {
    try TestPool(
      await PostgreSQLServer.shared().makeDatabase(), size: size, statementTimeout: statementTimeout,
      attempts: attempts)
  }
}

/// What a server said beside its answers.
final class Notices: Sendable {
  private let all = Mutex<[PostgreSQLNotice]>([])

  func append(_ notice: PostgreSQLNotice) { all.withLock { $0.append(notice) } }

  var texts: [String] { all.withLock { $0.map { "\($0.severity) \($0.sqlState) \($0.text)" } } }
}

/// A table of numbers, each once.
@Loop
enum NumberTable {
  nonisolated static let schema: StaticString = "CREATE TABLE number (value bigint PRIMARY KEY)"
  nonisolated static let insertion: StaticString = "INSERT INTO number (value) VALUES ($1)"

  /// A pool whose database has the table, empty.
  static func pool(size: Int = 4, attempts: Int = 5) async throws -> ConnectionPool {
    let pool = try await TestPool.fresh(size: size, attempts: attempts).pool
    try await pool.withConnection { try await $0.run(script: schema) }
    return pool
  }

  /// What is in the table, in order.
  static func values(_ pool: ConnectionPool) async throws -> [Int64] {
    try await pool.withConnection { connection in
      try await connection.query("SELECT value FROM number ORDER BY value", limit: .many) {
        row throws(PostgreSQLError) in try row.value(0)
      }
    }
  }
}

/// Limits that nothing here reaches.
extension ResultLimit {
  static let many = ResultLimit(rows: 1_000_000, bytes: 1 << 30)
}

/// The error that `body` throws.
@Loop
func failure(
  of body: @Loop () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async -> PostgreSQLError? {
  do {
    try await body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    return nil
  } catch {
    let own = error as? PostgreSQLError
    if own == nil { Issue.record("another error: \(error)", sourceLocation: sourceLocation) }
    return own
  }
}
