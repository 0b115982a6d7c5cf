import AccountEvents
import EventLoop
import SQLite

/// An operator's database, open for some people; used on the target's thread alone.
final class SQLiteTargetConnection {
  /// What is opened, and how.
  struct Opening: Sendable {
    let path: String
    let statements: SQLStatements
    let foreignKeys: Bool
    let statementTimeout: Duration
  }

  /// What became of one person's rows.
  struct Erased {
    /// How many the `erase` statements have changed.
    let affected: Int
    /// How many the `find` statement found then.
    let found: Int
  }

  /// Once it has taken so long, nobody more goes into a transaction: the application's own writes wait for its end.
  private static let longest = Duration.milliseconds(20)

  private let database: Database
  private let texts: SQLStatements
  private let count: Statement
  private let erase: [Statement]
  private let find: Statement

  /// Opens the database for these people, and returns what `work` answers each; where it throws, each has failed.
  static func serve<Question, Answer>(
    _ questions: [Question], _ opening: Opening,
    _ work: (SQLiteTargetConnection) throws(SQLiteError) -> [Result<Answer, SQLiteError>]
  ) -> [Result<Answer, ErasureFailure>] {
    do throws(SQLiteError) {
      return try work(try SQLiteTargetConnection(opening)).map { $0.mapError { ErasureFailure($0) } }
    } catch {
      return questions.map { _ in .failure(ErasureFailure(error)) }
    }
  }

  private init(_ opening: Opening) throws(SQLiteError) {
    let (database, statements) = (
      try Database(
        opening.path,
        .foreign(foreignKeys: opening.foreignKeys, statementTimeout: opening.statementTimeout),
        busyTimeout: .seconds(5)), opening.statements
    )
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
    (self.database, texts) = (database, statements)
    count = try compileQuery(statements.count)
    erase = try statements.erase.map { sql throws(SQLiteError) in try compile(sql) }
    find = try compileQuery(statements.find)
  }

  /// What the `count` statement says of each.
  func count(_ orders: [ErasureOrder]) throws(SQLiteError) -> [Result<Int, SQLiteError>] {
    try look(count, texts.count, orders)
  }

  /// Erases each, and looks for each afterwards.
  func erase(_ orders: [ErasureOrder]) throws(SQLiteError) -> [Result<Erased, SQLiteError>] {
    let erased = eraseTogether(orders)
    // What was erased is not to stay in the log; where a reader needs the log, SQLite overwrites it later.
    _ = try database.truncateLog()
    return zip(erased, try look(find, texts.find, orders)).map { erased, found in
      erased.flatMap { affected in found.map { Erased(affected: affected, found: $0) } }
    }
  }

  /// Erases as many as possible in one transaction. Where one cannot be erased nobody of theirs is, and fewer are tried
  /// together, until that one fails alone. Whose statement takes too long is known at once.
  private func eraseTogether(_ orders: [ErasureOrder]) -> [Result<Int, SQLiteError>] {
    var results: [Result<Int, SQLiteError>] = []
    var most = orders.count
    while results.count < orders.count {
      let rest = orders[results.count...]
      let some = rest.prefix(most)
      var done = 0
      do throws(SQLiteError) {
        results += try eraseFirst(of: some, &done).map { .success($0) }
        most = min(most * 2, orders.count)
      } catch {
        if Self.isEverybodys(error, after: results) {
          results += rest.map { _ in .failure(error) }
        } else if error.code == .statementTimeout, 1..<some.count ~= done {
          most = done
        } else if some.count > 1, error.code != .statementTimeout || done > 0 {
          most = some.count / 2
        } else {
          results.append(.failure(error))
        }
      }
    }
    return results
  }

  /// Erases people in one transaction, in their order and not for too long: at least one. Returns how many rows of each.
  /// `done` says for how many all statements have run.
  private func eraseFirst(of orders: ArraySlice<ErasureOrder>, _ done: inout Int) throws(SQLiteError) -> [Int] {
    try database.transaction { () throws(SQLiteError) in
      for sql in texts.erase { try database.expectNames(unescaped: sql, parameters: SQLStatements.parameters) }
      let end = MonotonicTime.now + Self.longest
      var affected: [Int] = []
      for order in orders where affected.isEmpty || MonotonicTime.now < end {
        var rows = 0
        for statement in erase {
          try statement.run(order.account.subject.text, order.account.team.text, order.occurredAt.milliseconds)
          // One that only looks leaves the number of the one before it.
          if !statement.isReadOnly { rows += database.changes }
        }
        affected.append(rows)
        done = affected.count
      }
      return affected
    }
  }

  /// Asks a statement about each.
  private func look(
    _ statement: Statement, _ text: String, _ orders: [ErasureOrder]
  ) throws(SQLiteError) -> [Result<Int, SQLiteError>] {
    try database.snapshot { () throws(SQLiteError) in
      try database.expectNames(unescaped: text, parameters: SQLStatements.parameters)
      var results: [Result<Int, SQLiteError>] = []
      for order in orders {
        do throws(SQLiteError) {
          results.append(.success(try number(statement, order)))
        } catch {
          if Self.isEverybodys(error, after: results) { throw error }
          results.append(.failure(error))
        }
      }
      return results
    }
  }

  private func number(_ statement: Statement, _ order: ErasureOrder) throws(SQLiteError) -> Int {
    let number: Int64? = try statement.first(
      order.account.subject.text, order.account.team.text, order.occurredAt.milliseconds
    ) { row throws(SQLiteError) in try row.value(0) }
    guard let number, number >= 0 else { throw .unexpectedValue("a statement that is to count returned no number") }
    return Int(number)
  }

  /// Whether it lies in the file, in a lock or the disk, and not in what was to be done for one person. A statement that
  /// takes too long is slow for that person, and for everybody once it was for another one before.
  private static func isEverybodys<Value>(_ error: SQLiteError, after results: [Result<Value, SQLiteError>]) -> Bool {
    guard error.code == .statementTimeout else { return ErasureFailure(error).code == .unavailable }
    return results.contains { result in
      if case .failure(let failure) = result { failure.code == .statementTimeout } else { false }
    }
  }
}
