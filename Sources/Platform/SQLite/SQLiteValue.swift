import CSQLite

/// What a column can hold and a parameter can be bound to: `Int64`, `String`, `[UInt8]`, and each of them or NULL.
///
/// A type of the domain becomes one by being one of these underneath.
public protocol SQLiteValue {
  /// Binds the value.
  func bind(to parameter: borrowing Parameter) throws(SQLiteError)
  /// Reads a value of exactly this type: SQLite's conversions are never used.
  init(reading column: borrowing Column) throws(SQLiteError)
}

extension Int64: SQLiteValue {
  /// Binds an integer.
  @inlinable
  public func bind(to parameter: borrowing Parameter) throws(SQLiteError) { try parameter.bind(self) }
  /// Reads an integer.
  @inlinable
  public init(reading column: borrowing Column) throws(SQLiteError) { self = try column.integer() }
}

extension String: SQLiteValue {
  /// Binds a text.
  @inlinable
  public func bind(to parameter: borrowing Parameter) throws(SQLiteError) { try parameter.bind(self) }
  /// Reads a text, which must be UTF-8.
  @inlinable
  public init(reading column: borrowing Column) throws(SQLiteError) { self = try column.text() }
}

extension [UInt8]: SQLiteValue {
  /// Binds a blob.
  @inlinable
  public func bind(to parameter: borrowing Parameter) throws(SQLiteError) { try parameter.bind(self) }
  /// Reads a blob.
  @inlinable
  public init(reading column: borrowing Column) throws(SQLiteError) { self = try column.bytes() }
}

extension Optional: SQLiteValue where Wrapped: SQLiteValue {
  /// Binds the value, or NULL.
  @inlinable
  public func bind(to parameter: borrowing Parameter) throws(SQLiteError) {
    if let self { try self.bind(to: parameter) } else { try parameter.bindNull() }
  }

  /// Reads a value, or NULL.
  @inlinable
  public init(reading column: borrowing Column) throws(SQLiteError) {
    self = column.isNull ? nil : try Wrapped(reading: column)
  }
}

/// A parameter of a statement, while it is being bound; or none, where the statement does not use a value: its index is 0.
@safe public struct Parameter: ~Copyable {
  let statement: OpaquePointer
  let index: Int32
  /// The statement's own, which outlives this.
  unowned(unsafe) let bound: BoundBytes

  /// Binds an integer.
  public func bind(_ value: Int64) throws(SQLiteError) {
    if index == 0 { return }
    try check(unsafe sqlite3_bind_int64(statement, index, value))
  }

  /// Binds a text, as UTF-8.
  public func bind(_ value: String) throws(SQLiteError) {
    if index == 0 { return }
    var value = value
    let result = value.withUTF8 { utf8 in
      unsafe utf8.withMemoryRebound(to: CChar.self) { text in
        let kept = unsafe bound.keep(UnsafeRawBufferPointer(text))
        return unsafe csqlite_bind_text(
          statement, index, kept?.assumingMemoryBound(to: CChar.self) ?? text.baseAddress, UInt64(text.count),
          kept == nil)
      }
    }
    try check(result)
  }

  /// Binds a blob.
  public func bind(_ value: [UInt8]) throws(SQLiteError) {
    if index == 0 { return }
    let result = unsafe value.withUnsafeBytes { bytes in
      let kept = unsafe bound.keep(bytes)
      return unsafe csqlite_bind_bytes(
        statement, index, kept ?? bytes.baseAddress, UInt64(bytes.count), kept == nil)
    }
    try check(result)
  }

  /// Binds NULL.
  public func bindNull() throws(SQLiteError) {
    if index == 0 { return }
    try check(unsafe sqlite3_bind_null(statement, index))
  }

  private func check(_ result: Int32) throws(SQLiteError) {
    if result != SQLITE_OK { throw unsafe SQLiteError(result, of: sqlite3_db_handle(statement)) }
  }
}

/// A column of the row that a statement stands on.
///
/// Its value is asked itself, not by way of the statement, which would look for the column at each question. The value is
/// what SQLite calls unprotected, which makes no difference where a connection takes no locks of its own (sqlite.org,
/// `sqlite3_value`), as none of `Database`'s does.
@safe public struct Column: ~Copyable {
  let index: Int32
  private let value: OpaquePointer?
  private let type: Int32

  /// Where there is no such column, it holds NULL.
  init(statement: OpaquePointer, index: Int32) {
    let value = unsafe sqlite3_column_value(statement, index)
    unsafe (self.index, self.value, type) = (index, value, sqlite3_value_type(value))
  }

  /// Whether it holds NULL.
  public var isNull: Bool { type == SQLITE_NULL }

  /// The integer that it holds.
  public func integer() throws(SQLiteError) -> Int64 {
    try expect(SQLITE_INTEGER, "an integer")
    return unsafe sqlite3_value_int64(value)
  }

  /// The text that it holds.
  public func text() throws(SQLiteError) -> String {
    try expect(SQLITE_TEXT, "a text")
    let start = unsafe sqlite3_value_text(value)
    let bytes = unsafe UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    do throws(UTF8.ValidationError) {
      return unsafe String(copying: try UTF8Span(validating: bytes.span))
    } catch {
      throw SQLiteError(.unexpectedValue, detail: "column \(index): the text is not UTF-8")
    }
  }

  /// The blob that it holds.
  public func bytes() throws(SQLiteError) -> [UInt8] {
    try expect(SQLITE_BLOB, "a blob")
    let start = unsafe sqlite3_value_blob(value)
    return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value))))
  }

  private func expect(_ type: Int32, _ name: String) throws(SQLiteError) {
    guard self.type == type else {
      throw SQLiteError(.unexpectedValue, detail: "column \(index) does not hold \(name)")
    }
  }
}
