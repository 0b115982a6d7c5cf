/// What a statement is run with where it has parameters for many, such as a list of rows. Those that nothing is bound to are
/// NULL.
@safe public struct Bindings: ~Copyable {
  /// Outlives this.
  @usableFromInline unowned(unsafe) let statement: Statement
  @usableFromInline var count: Int32 = 0

  @usableFromInline
  init(_ statement: Statement) { unsafe self.statement = statement }

  /// Binds values to the next parameters.
  @inlinable
  public mutating func add<each Value: SQLiteValue>(_ values: repeat each Value) throws(SQLiteError) {
    for value in repeat each values {
      count += 1
      try value.bind(to: unsafe statement.parameter(count))
    }
  }
}
