/// A value for a parameter of a statement that an operator wrote.
///
/// PostgreSQL prepares a statement only when it knows the type of each parameter, up to the highest that has one: by its
/// use in the statement, or because it was declared.
public enum ForeignValue: Sendable, Hashable {
  /// A text, or NULL, for a parameter that the statement has to use: its type follows from there, and a statement that
  /// does not use it is refused.
  case required(String?)
  /// A text, or NULL, whether the statement uses the parameter or not.
  case text(String?)
  /// An integer (`bigint`), or NULL, whether the statement uses the parameter or not.
  case integer(Int64?)

  /// The declared type; 0 where the server finds it out.
  var type: UInt32 {
    switch self {
    case .required: 0
    case .text: ParameterType.text.rawValue
    case .integer: ParameterType.integer.rawValue
    }
  }

  func bind(to parameters: inout Parameters) {
    switch self {
    case .required(let value?), .text(let value?): parameters.append(value)
    case .integer(let value?): parameters.append(value)
    case .required(nil), .text(nil), .integer(nil): parameters.appendNull()
    }
  }
}
