public import EventLoop

/// A connection to a database, for one task at a time.
///
/// Statements are fixed texts, which the type `StaticString` sees to, or an operator's own; in both a value reaches them
/// as a parameter. Each is prepared when it is first used, and sent with its first execution. Outside of a transaction every call is one of its
/// own, a batch as a whole.
///
/// A task that is cancelled while it waits for an answer gives the connection up: the server, told by the connection's
/// end, rolls back what was not committed. It looks for that end once a second while it works, and `statement_timeout`
/// bounds how long it can go on. libpq's own way of cancelling would block, and could hit the next statement.
@Loop
public final class Connection {
  /// A transaction that is to be, or has been, begun.
  struct Transaction {
    let beginning: StaticString
    var hasBegun = false
    /// The first failure in it, after which it cannot be committed.
    var failure: PostgreSQLError?
  }

  let link: Link
  let responseTimeout: Duration
  var transaction: Transaction?
  /// What the server knows each prepared statement by.
  var prepared: [Execution.Statement: String] = [:]
  /// How many statements were prepared.
  var preparations = 0
  /// When it is not lent any more.
  var expiry = MonotonicTime.distantFuture
  /// Whether its server has refused to write: it may have been demoted, and another one be the first now.
  var isReadOnly = false
  /// How many exchanges have begun, whether one has not ended, and whether it may be cancelled.
  var exchanges = 0
  var isBusy = false
  var isCancellable = false

  /// Connects, and sets the session up.
  static func open(
    _ configuration: PostgreSQLConfiguration, log: @escaping PostgreSQLLog
  ) async throws(PostgreSQLError) -> Connection {
    let link = try await ConnectionAttempt.connect(configuration, log: log)
    let connection = Connection(link, configuration.responseTimeout)
    var session = Batch()
    let timeout = "\(max(1, configuration.statementTimeout.wholeNanoseconds / 1_000_000))"
    session.append("SELECT set_config('statement_timeout', $1, false)", timeout)
    session.append(
      "SELECT set_config('default_transaction_isolation', $1, false)", configuration.defaultIsolation.rawValue)
    // Where this program's host is gone in the middle of a transaction, or frozen, the server keeps its locks no longer than
    // that.
    session.append("SELECT set_config('idle_in_transaction_session_timeout', '30s', false)")
    if !configuration.hidesRows {
      // Servers that only speak PostgreSQL's protocol may know no such setting.
      session.append(
        "SELECT set_config('row_security', 'off', false) WHERE current_setting('row_security', true) = 'on'")
    }
    if link.serverVersion >= 140_000 {
      session.append("SELECT set_config('client_connection_check_interval', '1s', false)")
    }
    do throws(PostgreSQLError) {
      _ = try await connection.run(session)
      return connection
    } catch {
      var error = error
      // Nothing was asked that could have happened.
      error.isUncertain = false
      throw error
    }
  }

  private init(_ link: Link, _ responseTimeout: Duration) {
    (self.link, self.responseTimeout) = (link, responseTimeout)
  }

  /// Executes the statement, and returns how many rows it has inserted, changed or deleted, or would have returned.
  @discardableResult
  public func execute<each Value: PostgreSQLParameter>(
    _ sql: StaticString, _ values: repeat each Value
  ) async throws(PostgreSQLError) -> Int {
    try await perform([Execution(sql, repeat each values)]) { _, _ throws(PostgreSQLError) in }[0]
  }

  /// Executes the statement, and calls `body` with each row as it comes: no more than one of them is in memory.
  ///
  /// Throws `.tooLarge` where there are more than `limit` allows, or what `body` throws. The statement has run all the
  /// same; its other rows are read and forgotten.
  public func forEach<each Value: PostgreSQLParameter>(
    _ sql: StaticString, _ values: repeat each Value, limit: ResultLimit,
    row body: (borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws(PostgreSQLError) {
    var (rows, bytes) = (0, 0)
    _ = try await perform([Execution(sql, repeat each values)]) { _, row throws(PostgreSQLError) in
      rows += 1
      bytes += row.size
      guard rows <= limit.rows, bytes <= limit.bytes else {
        throw PostgreSQLError(.tooLarge, detail: "more than \(limit.rows) rows or \(limit.bytes) bytes")
      }
      try body(row)
    }
  }

  /// Executes the statement, and returns what `body` makes of each row. Throws as `forEach` does.
  public func query<each Value: PostgreSQLParameter, Element>(
    _ sql: StaticString, _ values: repeat each Value, limit: ResultLimit,
    row body: (borrowing Row) throws(PostgreSQLError) -> Element
  ) async throws(PostgreSQLError) -> [Element] {
    var elements: [Element] = []
    try await forEach(sql, repeat each values, limit: limit) { row throws(PostgreSQLError) in
      elements.append(try body(row))
    }
    return elements
  }

  /// Executes the statement to its end, and returns what `body` makes of the first row; nil where there is none.
  public func first<each Value: PostgreSQLParameter, Element>(
    _ sql: StaticString, _ values: repeat each Value, row body: (borrowing Row) throws(PostgreSQLError) -> Element
  ) async throws(PostgreSQLError) -> Element? {
    var first: Element?
    _ = try await perform([Execution(sql, repeat each values)]) { _, row throws(PostgreSQLError) in
      if first == nil { first = try body(row) }
    }
    return first
  }

  /// Executes all of the batch, in its order and in one exchange with the server, and returns how many rows each has
  /// inserted, changed or deleted. Rows that they return are not kept.
  ///
  /// The first that fails (`execution` of the error) ends the batch. Outside of a transaction nothing of it has happened
  /// then.
  public func run(_ batch: Batch) async throws(PostgreSQLError) -> [Int] {
    if batch.executions.isEmpty { return [] }
    return try await perform(batch.executions, isNumbered: true) { _, _ throws(PostgreSQLError) in }
  }

  /// Executes all of the batch as the other does, and calls `body` with each row of each execution as it comes, and with
  /// the execution's index.
  @discardableResult
  public func run(
    _ batch: Batch, row body: (Int, borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws(PostgreSQLError) -> [Int] {
    if batch.executions.isEmpty { return [] }
    return try await perform(batch.executions, isNumbered: true, row: body)
  }

  /// Executes a statement that an operator wrote, and returns how many rows it has concerned. Its values are bound to
  /// `$1`, `$2`…; to another type than theirs it has to cast them (`$1::text::uuid`).
  @discardableResult
  public func execute(unescaped sql: String, _ values: [ForeignValue]) async throws(PostgreSQLError) -> Int {
    try await perform([Execution(unescaped: sql, values)]) { _, _ throws(PostgreSQLError) in }[0]
  }

  /// Executes a statement that an operator wrote to its end, and returns what `body` makes of the first row.
  public func first<Element>(
    unescaped sql: String, _ values: [ForeignValue], row body: (borrowing Row) throws(PostgreSQLError) -> Element
  ) async throws(PostgreSQLError) -> Element? {
    var first: Element?
    _ = try await perform([Execution(unescaped: sql, values)]) { _, row throws(PostgreSQLError) in
      if first == nil { first = try body(row) }
    }
    return first
  }

  /// Runs a text of several statements, which take no values and whose rows are not kept. They are one transaction,
  /// unless there are such in the text.
  public func run(script: StaticString) async throws(PostgreSQLError) {
    try await begin()
    try await converse(script)
  }
}
