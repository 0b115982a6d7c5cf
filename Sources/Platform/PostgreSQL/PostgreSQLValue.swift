import CLibpq

/// What a column can hold, and a parameter can be bound to: `Int64` (`bigint`), `String` (`text`), `[UInt8]` (`bytea`),
/// `Bool` (`boolean`), and each of them or NULL.
///
/// A parameter has exactly that type in its statement, and one of another type is written as a conversion there:
/// `$1::jsonb`, `$2::uuid`. A type of the domain becomes a value by being one of these underneath.
public protocol PostgreSQLValue: PostgreSQLParameter {
  /// Reads a value of exactly this kind: no text is taken for a number.
  init(reading column: borrowing Column) throws(PostgreSQLError)
}

extension Int64: PostgreSQLValue {
  /// `bigint`
  public static var parameterType: ParameterType { .integer }
  /// Binds an integer.
  public func bind(to parameters: inout Parameters) { parameters.append(self) }
  /// Reads an integer: `bigint`, `integer` or `smallint`.
  public init(reading column: borrowing Column) throws(PostgreSQLError) { self = try column.integer() }
}

extension String: PostgreSQLValue {
  /// `text`
  public static var parameterType: ParameterType { .text }
  /// Binds a text. The server refuses one with a NUL in it.
  public func bind(to parameters: inout Parameters) { parameters.append(self) }
  /// Reads a text: `text`, `varchar` or `name`.
  public init(reading column: borrowing Column) throws(PostgreSQLError) { self = try column.text() }
}

extension [UInt8]: PostgreSQLParameter {
  /// `bytea`
  public static var parameterType: ParameterType { .bytes }
  /// Binds bytes.
  public func bind(to parameters: inout Parameters) { parameters.append(self) }
}

extension [UInt8]: PostgreSQLValue {
  /// Reads bytes.
  public init(reading column: borrowing Column) throws(PostgreSQLError) { self = try column.bytes() }
}

extension Bool: PostgreSQLValue {
  /// `boolean`
  public static var parameterType: ParameterType { .bool }
  /// Binds true or false.
  public func bind(to parameters: inout Parameters) { parameters.append(self) }
  /// Reads true or false.
  public init(reading column: borrowing Column) throws(PostgreSQLError) { self = try column.bool() }
}

extension Optional: PostgreSQLParameter where Wrapped: PostgreSQLParameter {
  /// The type of what may be there.
  public static var parameterType: ParameterType { Wrapped.parameterType }

  /// Binds the value, or NULL.
  public func bind(to parameters: inout Parameters) {
    if let self { self.bind(to: &parameters) } else { parameters.appendNull() }
  }
}

extension Optional: PostgreSQLValue where Wrapped: PostgreSQLValue {
  /// Reads a value, or NULL.
  public init(reading column: borrowing Column) throws(PostgreSQLError) {
    self = column.isNull ? nil : try Wrapped(reading: column)
  }
}
