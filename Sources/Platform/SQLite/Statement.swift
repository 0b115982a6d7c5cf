import CSQLite

/// A prepared statement: compiled once, run as often as its owner likes. It keeps its database open.
///
/// Values are bound to its parameters in their order. What was bound is forgotten when a run has ended.
@safe public final class Statement {
  private let database: Database
  private let handle: OpaquePointer

  init(_ sql: StaticString, in database: Database) throws(SQLiteError) {
    var handle: OpaquePointer?
    let text = unsafe UnsafeRawPointer(sql.utf8Start).assumingMemoryBound(to: CChar.self)
    var rest: UnsafePointer<CChar>?
    // Persistent: it lives long, and its memory must not come from the connection's small pool.
    let result = unsafe sqlite3_prepare_v3(
      database.handle, text, Int32(sql.utf8CodeUnitCount), UInt32(SQLITE_PREPARE_PERSISTENT), &handle, &rest)
    guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: database.handle) }
    guard let handle = unsafe handle else { preconditionFailure("no statement in \(sql)") }
    precondition(unsafe rest == text + sql.utf8CodeUnitCount, "more than one statement in \(sql)")
    self.database = database
    unsafe self.handle = handle
  }

  deinit { unsafe sqlite3_finalize(handle) }

  /// Runs it to its end, whatever rows it returns.
  public func run<each Value: SQLiteValue>(_ values: repeat each Value) throws(SQLiteError) {
    defer { end() }
    try bind(repeat each values)
    while try step() {}
  }

  /// Runs it to its end, and calls `body` with each row.
  public func forEach<each Value: SQLiteValue>(
    _ values: repeat each Value, row body: (borrowing Row) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    defer { end() }
    try bind(repeat each values)
    while try step() { try body(unsafe Row(statement: handle)) }
  }

  /// Runs it to its end, and returns what `body` makes of the first row; nil where there is none.
  public func first<each Value: SQLiteValue, Result>(
    _ values: repeat each Value, row body: (borrowing Row) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result? {
    defer { end() }
    try bind(repeat each values)
    guard try step() else { return nil }
    let result = try body(unsafe Row(statement: handle))
    // To its end, because what it changes outside of a transaction is committed there.
    while try step() {}
    return result
  }

  private func bind<each Value: SQLiteValue>(_ values: repeat each Value) throws(SQLiteError) {
    var index: Int32 = 0
    for value in repeat each values {
      index += 1
      try value.bind(to: unsafe Parameter(statement: handle, index: index))
    }
    precondition(
      unsafe index == sqlite3_bind_parameter_count(handle),
      "\(index) values for another number of parameters")
  }

  /// Whether it stands on a row now.
  private func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let failure: throw unsafe SQLiteError(failure, of: database.handle)
    }
  }

  /// Lets go of locks, and of what was bound: it may be personal.
  private func end() {
    // It returns the failure of the run, which was thrown already.
    unsafe sqlite3_reset(handle)
    unsafe sqlite3_clear_bindings(handle)
  }
}
