/// What a parameter can be bound to: the values that columns hold, and arrays of them.
public protocol PostgreSQLParameter {
  /// The type of a parameter of this kind.
  static var parameterType: ParameterType { get }
  /// Binds the value.
  func bind(to parameters: inout Parameters)
}

/// The types that a parameter can have: PostgreSQL's own numbers for them.
public enum ParameterType: UInt32, Sendable {
  /// `boolean`
  case bool = 16
  /// `bytea`
  case bytes = 17
  /// `bigint`
  case integer = 20
  /// `text`
  case text = 25
  /// `boolean[]`
  case bools = 1000
  /// `bytea[]`
  case arraysOfBytes = 1001
  /// `text[]`
  case texts = 1009
  /// `bigint[]`
  case integers = 1016

  /// The type of an array of these. An array of arrays is an array of their elements to PostgreSQL.
  var array: ParameterType {
    switch self {
    case .bool, .bools: .bools
    case .bytes, .arraysOfBytes: .arraysOfBytes
    case .text, .texts: .texts
    case .integer, .integers: .integers
    }
  }
}

/// Many values as one parameter (`unnest($1)`, `= ANY ($1)`): one statement for many rows.
public struct PostgreSQLArray<Element: PostgreSQLValue>: PostgreSQLParameter {
  private let elements: [Element]

  /// An array of these values.
  public init(_ elements: [Element]) { self.elements = elements }

  /// The type of an array of such values.
  public static var parameterType: ParameterType { Element.parameterType.array }

  /// Binds an array of one dimension.
  public func bind(to parameters: inout Parameters) {
    var values = Parameters()
    for element in elements { element.bind(to: &values) }
    parameters.append(values, of: Element.parameterType)
  }
}
