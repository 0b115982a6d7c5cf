/// What went wrong with a database of PostgreSQL's.
public struct PostgreSQLError: Error, Sendable, Equatable {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  public enum Code: String, Sendable, CaseIterable {
    /// The text that names the database is none that libpq reads, or asks for what is not supported here.
    case configuration
    /// No connection came to stand, or one broke.
    case connection
    /// The server did not let us in: an unknown user, a wrong password, a rule of its own.
    case authentication
    /// There is no such database.
    case unknownDatabase
    /// The server starts, shuts down, or ended this connection.
    case unavailable
    /// The server has no room for another connection, or no disk or memory left.
    case resources
    /// Transactions that ran side by side cannot have run one after the other.
    case serialization
    /// Transactions waited for each other.
    case deadlock
    /// A lock could not be had in time.
    case lock
    /// A row of that key is there already.
    case uniqueViolation
    /// A row would break another rule of the schema.
    case constraint
    /// A value that its type does not have, or that cannot be computed with.
    case data
    /// A statement that does not fit the schema, or is none.
    case statement
    /// This user may not do that.
    case permission
    /// Nothing can be written here: a standby, or a transaction that only reads.
    case readOnly
    /// The schema changed under a statement that was prepared, or the server has forgotten it.
    case stalePlan
    /// The statement took longer than it may, or somebody ended it at the server.
    case statementTimeout
    /// The server did not answer in time; the connection was given up.
    case unanswered
    /// No connection of the pool became free in time.
    case exhausted
    /// A function of the database's raised an error of its own.
    case raised
    /// More rows or bytes than the limit allows.
    case tooLarge
    /// A column holds another type than the one that was asked for, or there is no such column.
    case unexpectedValue
    /// The task that waited was cancelled; the connection was given up.
    case cancelled
    /// The connection or its pool was closed.
    case closed
    /// The server failed inside, or its disk did.
    case server
    /// Nothing of the above; `sqlState` says more.
    case other
  }

  /// What happened.
  public let code: Code
  /// PostgreSQL's own code of five characters; nil where the server said nothing.
  public let sqlState: String?
  /// Names of the schema, or our or libpq's words. Never a value that was bound or read, and never a password.
  public let detail: String
  /// Which execution of a batch failed, the first being 0; nil outside of batches, and where it was the commit.
  public internal(set) var execution: Int?
  /// Whether it may have happened all the same: the connection was lost between the request and the answer.
  public internal(set) var isUncertain = false
  /// Why the transaction could not be rolled back afterwards; the server rolls it back then, with the connection's end.
  public internal(set) var rollbackFailure: String?
  /// What the server said, values included: for whoever debugs, and for nobody else.
  let serverMessage: String

  init(_ code: Code, sqlState: String? = nil, detail: String, serverMessage: String = "") {
    (self.code, self.sqlState, self.detail, self.serverMessage) = (code, sqlState, detail, serverMessage)
  }

  /// The error of a column that holds what cannot be there; for types that are made of others. `detail` must not hold
  /// the value.
  public static func unexpectedValue(_ detail: String) -> PostgreSQLError { .init(.unexpectedValue, detail: detail) }

  static let closed = PostgreSQLError(.closed, detail: "the connection was closed")
  static let cancelled = PostgreSQLError(.cancelled, detail: "the task was cancelled")

  /// Whether nothing has happened, and the same may succeed a little later with nobody changing anything.
  public var isRetriable: Bool {
    if isUncertain { return false }
    switch code {
    case .connection, .unavailable, .resources, .serialization, .deadlock, .lock, .stalePlan, .statementTimeout,
      .unanswered, .exhausted, .server:
      return true
    case .configuration, .authentication, .unknownDatabase, .uniqueViolation, .constraint, .data, .statement,
      .permission, .readOnly, .raised, .tooLarge, .unexpectedValue, .cancelled, .closed, .other:
      return false
    }
  }

  /// Whether a transaction is run again at once because of it: what runs beside it, or a connection, will be another.
  var endsOnlyThisAttempt: Bool { code.endsOnlyThisAttempt && !isUncertain }
}

extension PostgreSQLError.Code {
  /// The same of what cannot be uncertain.
  var endsOnlyThisAttempt: Bool {
    switch self {
    case .serialization, .deadlock, .stalePlan, .connection, .unavailable: true
    default: false
    }
  }
}

extension PostgreSQLError: CustomStringConvertible, CustomDebugStringConvertible {
  /// The code and the words, without values.
  public var description: String {
    let state = sqlState.map { " (\($0))" } ?? ""
    let place = execution.map { "execution \($0): " } ?? ""
    let doubt = isUncertain ? "; it may have happened all the same" : ""
    let rollback = rollbackFailure.map { "; and the transaction could not be rolled back: \($0)" } ?? ""
    return "\(code.rawValue)\(state): \(place)\(detail)\(doubt)\(rollback)"
  }

  /// The same, and what the server said, which may hold values: not for a log.
  public var debugDescription: String { serverMessage.isEmpty ? description : "\(description) [\(serverMessage)]" }
}
