import CSQLite

/// A prepared statement: compiled once, run as often as its owner likes. It keeps its database open.
///
/// Values are bound to its parameters in their order. What was bound is forgotten when a run has ended.
@safe public final class Statement {
  private let database: Database
  private let handle: OpaquePointer
  /// Where each value goes, and whether it goes anywhere: 0. Nil where values go to the parameters in their order.
  private let places: [Int32]?
  private let bound: BoundBytes

  init(_ sql: StaticString, in database: Database) throws(SQLiteError) {
    (self.database, places) = (database, nil)
    unsafe handle = try Self.compile(sql, in: database)
    bound = unsafe BoundBytes(for: Int(sqlite3_bind_parameter_count(handle)))
  }

  init(unescaped sql: String, parameters names: [String], in database: Database) throws(SQLiteError) {
    let text = Array(sql.utf8CString)
    let (compiled, length) = try unsafe text.withUnsafeBufferPointer { text throws(SQLiteError) in
      guard let base = text.baseAddress else { preconditionFailure("a C string has an end") }
      return try unsafe Self.compile(base, text.count - 1, in: database)
    }
    let isWhole = text[length...].allSatisfy { [0, 0x09, 0x0a, 0x0d, 0x20].contains($0) }
    guard let handle = unsafe compiled, isWhole else {
      unsafe sqlite3_finalize(compiled)
      throw SQLiteError(.other, detail: "not exactly one statement")
    }
    let places = names.map { unsafe sqlite3_bind_parameter_index(handle, $0) }
    guard unsafe sqlite3_bind_parameter_count(handle) == places.count(where: { $0 != 0 }) else {
      unsafe sqlite3_finalize(handle)
      throw SQLiteError(.other, detail: "a parameter beside \(names.joined(separator: " and "))")
    }
    (self.database, self.places) = (database, places)
    unsafe (self.handle, bound) = (handle, BoundBytes(for: Int(sqlite3_bind_parameter_count(handle))))
  }

  /// The one statement in the text; whoever calls finalizes it.
  static func compile(_ sql: StaticString, in database: Database) throws(SQLiteError) -> OpaquePointer {
    let text = unsafe UnsafeRawPointer(sql.utf8Start).assumingMemoryBound(to: CChar.self)
    let (compiled, length) = try unsafe compile(text, sql.utf8CodeUnitCount, in: database)
    guard let handle = unsafe compiled else { preconditionFailure("no statement in \(sql)") }
    precondition(length == sql.utf8CodeUnitCount, "more than one statement in \(sql)")
    return unsafe handle
  }

  /// The first statement in the text, if there is one, and where it ends.
  private static func compile(
    _ text: UnsafePointer<CChar>, _ count: Int, in database: Database
  ) throws(SQLiteError) -> (OpaquePointer?, length: Int) {
    var handle: OpaquePointer?
    var rest: UnsafePointer<CChar>?
    // Persistent: it lives long, and its memory must not come from the connection's small pool.
    let result = unsafe sqlite3_prepare_v3(
      database.handle, text, Int32(clamping: count), UInt32(SQLITE_PREPARE_PERSISTENT), &handle, &rest)
    guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: database.handle) }
    return unsafe (handle, rest.map { unsafe $0 - text } ?? count)
  }

  deinit { unsafe sqlite3_finalize(handle) }

  /// Whether running it changes nothing in the database.
  public var isReadOnly: Bool { unsafe sqlite3_stmt_readonly(handle) != 0 }

  /// Whether it has a parameter of that name, such as `$1`.
  public func uses(parameter name: String) -> Bool { unsafe sqlite3_bind_parameter_index(handle, name) != 0 }

  // Inlined where they are called: what is bound there has types that are known.

  /// Runs it to its end, whatever rows it returns.
  @inlinable
  public func run<each Value: SQLiteValue>(_ values: repeat each Value) throws(SQLiteError) {
    defer { end() }
    try bind(repeat each values)
    while try step() {}
  }

  /// Runs it to its end, and calls `body` with each row.
  @inlinable
  public func forEach<each Value: SQLiteValue>(
    _ values: repeat each Value, row body: (borrowing Row) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    defer { end() }
    try bind(repeat each values)
    while try step() { try body(row) }
  }

  /// Runs it to its end with what `bind` binds, and calls `body` with each row.
  @inlinable
  public func forEach(
    binding bind: (inout Bindings) throws(SQLiteError) -> Void, row body: (borrowing Row) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    defer { end() }
    var bindings = Bindings(self)
    try bind(&bindings)
    begin()
    while try step() { try body(row) }
  }

  /// Runs it to its end, and returns what `body` makes of the first row; nil where there is none.
  @inlinable
  public func first<each Value: SQLiteValue, Result>(
    _ values: repeat each Value, row body: (borrowing Row) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result? {
    defer { end() }
    try bind(repeat each values)
    guard try step() else { return nil }
    let result = try body(row)
    // To its end, because what it changes outside of a transaction is committed there.
    while try step() {}
    return result
  }

  @inlinable
  func bind<each Value: SQLiteValue>(_ values: repeat each Value) throws(SQLiteError) {
    var count: Int32 = 0
    for value in repeat each values {
      count += 1
      try value.bind(to: parameter(count))
    }
    begin(with: count)
  }

  /// Where the value goes that is given at this place, from 1 on.
  @usableFromInline
  func parameter(_ place: Int32) -> Parameter {
    let index = places.map { Int(place) <= $0.count ? $0[Int(place) - 1] : 0 } ?? place
    return unsafe Parameter(statement: handle, index: index, bound: bound)
  }

  /// The run begins, with so many values.
  @usableFromInline
  func begin(with count: Int32) {
    precondition(
      unsafe Int(count) == places?.count ?? Int(sqlite3_bind_parameter_count(handle)),
      "\(count) values for another number of parameters")
    begin()
  }

  @usableFromInline
  func begin() { unsafe database.begins(handle) }

  /// The row that it stands on.
  @usableFromInline var row: Row { unsafe Row(statement: handle) }

  /// Whether it stands on a row now.
  @usableFromInline
  func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let failure: throw unsafe SQLiteError(failure, of: database.handle, hasRun: true)
    }
  }

  /// Lets go of locks, and of what was bound: it may be personal.
  @usableFromInline
  func end() {
    // It returns the failure of the run, which was thrown already.
    unsafe sqlite3_reset(handle)
    unsafe sqlite3_clear_bindings(handle)
    bound.forget()
  }
}
