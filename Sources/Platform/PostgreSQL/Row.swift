import CLibpq

/// A row of a result, for as long as the closure runs that was given it.
@safe public struct Row: ~Copyable {
  let result: OpaquePointer

  /// The value in a column, the first of which is 0. Throws where it is of another type.
  public func value<Value: PostgreSQLValue>(_ column: Int) throws(PostgreSQLError) -> Value {
    try Value(reading: unsafe Column(result: result, index: Int32(clamping: column)))
  }

  /// The value in a column as the given type; for where the type cannot be told from its use.
  public func value<Value: PostgreSQLValue>(_ column: Int, as type: Value.Type) throws(PostgreSQLError) -> Value {
    try value(column)
  }

  /// How many bytes its values have.
  var size: Int {
    var sum = 0
    for column in 0..<(unsafe PQnfields(result)) { sum += Int(unsafe PQgetlength(result, 0, column)) }
    return sum
  }
}

/// A column of a row.
@safe public struct Column: ~Copyable {
  let result: OpaquePointer
  let index: Int32

  /// Whether it holds NULL.
  public var isNull: Bool { unsafe isThere && PQgetisnull(result, 0, index) == 1 }

  /// The integer that it holds.
  public func integer() throws(PostgreSQLError) -> Int64 {
    try unsafe read([clibpq_int8, clibpq_int4, clibpq_int2], "an integer") { bytes in
      guard let first = unsafe bytes.first else { return nil }
      // The sign is in the first byte, whichever of the sizes it is.
      return unsafe bytes.reduce(Int64(Int8(bitPattern: first) < 0 ? -1 : 0)) { $0 << 8 | Int64($1) }
    }
  }

  /// The text that it holds.
  public func text() throws(PostgreSQLError) -> String {
    // Not UTF-8 is what a database in SQL_ASCII can hold.
    try unsafe read([clibpq_text, clibpq_varchar, clibpq_name], "a text in UTF-8") { bytes in
      unsafe String(validating: bytes, as: UTF8.self)
    }
  }

  /// The bytes that it holds.
  public func bytes() throws(PostgreSQLError) -> [UInt8] {
    try unsafe read([clibpq_bytea], "bytes") { unsafe [UInt8]($0) }
  }

  /// Whether it holds true.
  public func bool() throws(PostgreSQLError) -> Bool {
    try unsafe read([clibpq_bool], "a boolean") { unsafe $0.first == 1 }
  }

  private var isThere: Bool { unsafe index >= 0 && index < PQnfields(result) }

  private func read<Value>(
    _ types: [Int], _ name: String, _ body: (UnsafeRawBufferPointer) -> Value?
  ) throws(PostgreSQLError) -> Value {
    guard isThere else { throw .unexpectedValue("there is no column \(index)") }
    let isOfType = unsafe types.contains(Int(PQftype(result, index))) && PQfformat(result, index) == 1
    guard isOfType, !isNull else { throw .unexpectedValue("column \(index) does not hold \(name)") }
    let bytes = unsafe UnsafeRawBufferPointer(
      start: PQgetvalue(result, 0, index), count: Int(PQgetlength(result, 0, index)))
    guard let value = unsafe body(bytes) else { throw .unexpectedValue("column \(index) does not hold \(name)") }
    return value
  }
}
