/// The row that a statement stands on, for as long as the closure runs that was given it.
@safe public struct Row: ~Copyable {
  let statement: OpaquePointer

  /// The value in a column, the first of which is 0. Throws where it holds another type.
  public func value<Value: SQLiteValue>(_ column: Int) throws(SQLiteError) -> Value {
    try Value(reading: unsafe Column(statement: statement, index: Int32(clamping: column)))
  }

  /// The value in a column as the given type; for where the type cannot be told from its use.
  public func value<Value: SQLiteValue>(_ column: Int, as type: Value.Type) throws(SQLiteError) -> Value {
    try value(column)
  }
}
