import AccountEvents
import EventLoop
import SQLite

/// An SQLite database of the operator's.
///
/// Whoever waits for it at a moment is served by one connection, which is closed after them. Kept open, it might be to a
/// file that another one has replaced, whose log would stay beside the new one and be taken for its own.
package final class SQLiteTarget: ErasureTarget {
  /// How many people are served by one connection at most.
  private static let group = 256

  /// Whether the database's foreign keys are enforced, and its cascades followed, while rows are erased.
  package let foreignKeys: Bool
  private let opening: SQLiteTargetConnection.Opening
  private let thread: BlockingThread
  private let counts: Questions<ErasureOrder, Int, ErasureFailure>
  private let erasures: Questions<ErasureOrder, SQLiteTargetConnection.Erased, ErasureFailure>

  /// The database at `path`, which must be there when the target is used. A statement that runs for longer than
  /// `statementTimeout` fails.
  package init(path: String, statements: SQLStatements, foreignKeys: Bool, statementTimeout: Duration) {
    let thread = BlockingThread(named: "erasure")
    let opening = SQLiteTargetConnection.Opening(
      path: path, statements: statements, foreignKeys: foreignKeys, statementTimeout: statementTimeout)
    (self.foreignKeys, self.opening, self.thread) = (foreignKeys, opening, thread)
    counts = Questions(upTo: Self.group) { orders in
      await thread.run {
        SQLiteTargetConnection.serve(orders, opening) { connection throws(SQLiteError) in
          try connection.count(orders)
        }
      }
    }
    erasures = Questions(upTo: Self.group) { orders in
      await thread.run {
        SQLiteTargetConnection.serve(orders, opening) { connection throws(SQLiteError) in
          try connection.erase(orders)
        }
      }
    }
  }

  /// Asks the `count` statement.
  package func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? { try await counts.ask(order) }

  /// Runs the `erase` statements in one transaction, together with those for others who wait, then asks the `find`
  /// statement.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    let erased = try await erasures.ask(order)
    guard erased.found == 0 else {
      throw ErasureFailure(.remaining, "\(erased.found) found after \(erased.affected) were erased")
    }
    return ErasureResult(.erased, affected: erased.affected, found: erased.found, detail: "")
  }

  /// Opens the database and compiles the statements.
  package func check() async throws(ErasureFailure) {
    let answers = await thread.run { [opening] in
      SQLiteTargetConnection.serve([()], opening) { _ in [.success(())] }
    }
    for answer in answers { try answer.get() }
  }
}

extension ErasureFailure {
  /// What SQLite said about an operator's database.
  init(_ error: SQLiteError) {
    let code: Code =
      switch error.code {
      case .busy, .full, .ioError, .outOfMemory, .statementTimeout: .unavailable
      case .constraint: .refused
      case .corrupt, .notADatabase, .readOnly, .cantOpen, .schema, .unexpectedValue, .other: .misconfigured
      }
    self.init(code, error.description)
  }
}
