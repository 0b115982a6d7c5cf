package import AccountEvents
import EventLoop
import SQLite

/// An SQLite database of the operator's.
package final class SQLiteTarget: ErasureTarget {
  private let path: String
  private let statements: SQLStatements
  private let thread: BlockingThread

  /// The database at `path`, which must be there when the target is used.
  package init(path: String, statements: SQLStatements) {
    (self.path, self.statements) = (path, statements)
    thread = BlockingThread(named: "erasure")
  }

  /// Asks the `count` statement.
  package func count(_ account: Account) async throws(ErasureFailure) -> Int? {
    try await run { connection throws(SQLiteError) in try connection.number(connection.count, account) }
  }

  /// Runs the `erase` statements in one transaction, then asks the `find` statement.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    let account = order.account
    let (affected, found) = try await run { connection throws(SQLiteError) in
      let affected = try connection.database.transaction { () throws(SQLiteError) in
        var affected = 0
        for statement in connection.erase {
          try statement.run(account.subject.text, account.team.text)
          affected += connection.database.changes
        }
        return affected
      }
      // What was erased is not to stay in the log; where a reader needs the log, SQLite overwrites it later.
      _ = try connection.database.truncateLog()
      return (affected, try connection.number(connection.find, account))
    }
    guard found == 0 else { throw ErasureFailure(.remaining, "\(found) found after \(affected) were erased") }
    return ErasureResult(.erased, affected: affected, found: found, detail: "")
  }

  /// Opens the database and compiles the statements.
  package func check() async throws(ErasureFailure) { try await run { _ in } }

  private func run<Value: Sendable>(
    _ work: @escaping @Sendable (Connection) throws(SQLiteError) -> Value
  ) async throws(ErasureFailure) -> Value {
    let result = await thread.run { [path, statements] in
      Result { () throws(ErasureFailure) in
        do throws(SQLiteError) {
          // Anew each time: what was open before may be a file that another one has replaced, and nobody's any more.
          return try work(try Connection(path, statements))
        } catch {
          throw ErasureFailure(error)
        }
      }
    }
    return try result.get()
  }
}

/// The open database, used on the target's thread alone.
private final class Connection {
  let database: Database
  let count: Statement
  let erase: [Statement]
  let find: Statement

  init(_ path: String, _ statements: SQLStatements) throws(SQLiteError) {
    let database = try Database(path, .foreign, busyTimeout: .seconds(5))
    func compile(_ sql: String) throws(SQLiteError) -> Statement {
      let statement = try database.prepare(unescaped: sql, parameters: SQLStatements.parameters)
      // One that names nobody speaks of everybody, or of a whole team.
      guard statement.uses(parameter: "$1") else { throw .unexpectedValue("a statement without $1: \(sql)") }
      return statement
    }
    func compileQuery(_ sql: String) throws(SQLiteError) -> Statement {
      let statement = try compile(sql)
      guard statement.isReadOnly else { throw .unexpectedValue("a statement that is to look and would change: \(sql)") }
      return statement
    }
    self.database = database
    count = try compileQuery(statements.count)
    erase = try statements.erase.map { sql throws(SQLiteError) in try compile(sql) }
    find = try compileQuery(statements.find)
  }

  func number(_ statement: Statement, _ account: Account) throws(SQLiteError) -> Int {
    let number: Int64? = try statement.first(account.subject.text, account.team.text) { row throws(SQLiteError) in
      try row.value(0)
    }
    guard let number, number >= 0 else { throw .unexpectedValue("a statement that is to count returned no number") }
    return Int(number)
  }
}

extension ErasureFailure {
  /// What SQLite said about an operator's database.
  init(_ error: SQLiteError) {
    let code: Code =
      switch error.code {
      case .busy, .full, .ioError, .outOfMemory: .unavailable
      case .constraint: .refused
      case .corrupt, .notADatabase, .readOnly, .cantOpen, .schema, .unexpectedValue, .other: .misconfigured
      }
    self.init(code, error.description)
  }
}
