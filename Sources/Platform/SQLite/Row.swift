/// The row that a statement stands on, for as long as the closure runs that was given it.
@safe public struct Row: ~Copyable {
  let statement: OpaquePointer

  /// A column of it, the first of which is 0.
  @usableFromInline
  func column(_ index: Int) -> Column { unsafe Column(statement: statement, index: Int32(clamping: index)) }

  /// The value in a column, the first of which is 0. Throws where it holds another type.
  @inlinable
  public func value<Value: SQLiteValue>(_ column: Int) throws(SQLiteError) -> Value {
    try Value(reading: self.column(column))
  }

  /// The value in a column as the given type; for where the type cannot be told from its use.
  @inlinable
  public func value<Value: SQLiteValue>(_ column: Int, as type: Value.Type) throws(SQLiteError) -> Value {
    try value(column)
  }
}
