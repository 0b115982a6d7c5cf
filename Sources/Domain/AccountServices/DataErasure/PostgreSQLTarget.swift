import AccountEvents
package import Configuration
import EventLoop
import PostgreSQL
package import Telemetry

/// A PostgreSQL database of the operator's.
package final class PostgreSQLTarget: ErasureTarget {
  /// Whether policies of row-level security may hide rows from the statements.
  package let rowSecurity: Bool
  private let statements: SQLStatements
  private let pool: Result<ConnectionPool, ErasureFailure>

  /// The database that libpq's connection string names. Unless `rowSecurity`, what a policy would hide is refused.
  package init(connection: Secret, statements: SQLStatements, rowSecurity: Bool, logger: Logger) {
    (self.statements, self.rowSecurity) = (statements, rowSecurity)
    do throws(PostgreSQLError) {
      var configuration = try PostgreSQLConfiguration(
        connectionInfo: connection.revealed, size: 4, connectTimeout: .seconds(10), leaseTimeout: .seconds(15),
        statementTimeout: .seconds(60), responseTimeout: .seconds(70), defaultIsolation: .readCommitted,
        transactionAttempts: 5)
      configuration.hidesRows = rowSecurity
      pool = .success(
        ConnectionPool(configuration, jitter: { Double.random(in: 0..<1) }) { notice in
          logger.debug(
            "an erasure target's database says something",
            ["sql.severity": .string(notice.severity), "sql.state": .string(notice.sqlState)])
        })
    } catch {
      pool = .failure(ErasureFailure(error))
    }
  }

  /// Asks the `count` statement.
  package func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? {
    try await look(statements.count, order)
  }

  /// Runs the `erase` statements in one transaction, then asks the `find` statement.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    let affected = try await run { [statements] connection in
      // A server or a role may be set so that a commit is forgotten in a power cut. What is said to be erased is.
      try await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit', true) = 'off'")
      var affected = 0
      for sql in statements.erase {
        affected += try await connection.execute(unescaped: sql, try SQLStatements.values(of: sql, order))
      }
      return affected
    }
    let found = try await look(statements.find, order)
    guard found == 0 else { throw ErasureFailure(.remaining, "\(found) found after \(affected) were erased") }
    return ErasureResult(.erased, affected: affected, found: found, detail: "")
  }

  /// Has the server plan the statements, without executing them: with NULL, which can be cast to any type.
  package func check() async throws(ErasureFailure) {
    try await run { [statements] connection in
      for sql in [statements.count] + statements.erase + [statements.find] {
        try await connection.execute(unescaped: "EXPLAIN \(sql)", try SQLStatements.values(of: sql, nil))
      }
    }
  }

  /// Asks a statement that must change nothing, and return one number.
  private func look(_ sql: String, _ order: ErasureOrder) async throws(ErasureFailure) -> Int {
    let number = try await run { connection in
      try await connection.execute("SET TRANSACTION READ ONLY")
      return try await connection.first(unescaped: sql, try SQLStatements.values(of: sql, order)) {
        row throws(PostgreSQLError) in try row.value(0, as: Int64.self)
      }
    }
    guard let number, number >= 0 else {
      throw ErasureFailure(.misconfigured, "a statement that is to count returned no number")
    }
    return Int(number)
  }

  private func run<Value>(_ body: @Loop (Connection) async throws -> Value) async throws(ErasureFailure) -> Value {
    let pool = try pool.get()
    do {
      return try await pool.transaction(.readCommitted, body)
    } catch let failure as ErasureFailure {
      throw failure
    } catch let error as PostgreSQLError {
      throw ErasureFailure(error)
    } catch {
      throw ErasureFailure(.unavailable, "cancelled")
    }
  }
}

extension SQLStatements {
  /// The values of the parameters; NULLs without an order. Refuses a statement that names nobody.
  fileprivate static func values(
    of sql: String, _ order: ErasureOrder?
  ) throws(ErasureFailure) -> [ForeignValue] {
    guard sql.contains("$1") else { throw ErasureFailure(.misconfigured, "a statement without $1: \(sql)") }
    let team = order?.account.team.text
    return [
      // The server refuses the statement where `$1` stands in a comment or in a text alone.
      .required(order?.account.subject.text), sql.contains("$2") ? .required(team) : .text(team),
      .integer(order?.occurredAt.milliseconds),
    ]
  }
}

extension ErasureFailure {
  private static let missingRight =
    "the role lacks a right, or row-level security may hide rows from it: give it BYPASSRLS, or say row-security: true where its policies show it every row"

  /// What PostgreSQL said about an operator's database.
  init(_ error: PostgreSQLError) {
    let code: Code =
      switch error.code {
      // What the server calls a violation of the protocol: values for parameters that the statement does not have. And an
      // internal error: values for a statement that is a comment and nothing else.
      case _ where error.sqlState == "08P01" || error.sqlState == "XX000": .misconfigured
      case .constraint, .uniqueViolation, .raised: .refused
      case .configuration, .unknownDatabase, .authentication, .permission, .data, .statement, .readOnly,
        .unexpectedValue, .tooLarge, .other:
        .misconfigured
      case .connection, .unavailable, .resources, .serialization, .deadlock, .lock, .statementTimeout, .unanswered,
        .exhausted, .cancelled, .closed, .server, .stalePlan:
        .unavailable
      }
    self.init(code, error.code == .permission ? "\(error): \(Self.missingRight)" : "\(error)")
  }
}
