import CLibpq

/// Executions of statements that are sent together, and answered together.
public struct Batch: Sendable {
  private(set) var executions: [Execution] = []

  /// A batch of nothing.
  public init() {}

  /// How many executions there are.
  public var count: Int { executions.count }

  /// Adds an execution of the statement with these values, in the order of its parameters `$1`, `$2`….
  public mutating func append<each Value: PostgreSQLParameter>(_ sql: StaticString, _ values: repeat each Value) {
    executions.append(Execution(sql, repeat each values))
  }
}

/// A statement and the values that it is to be executed with.
struct Execution: Sendable {
  /// What the server knows a prepared statement by: its text, and the types of its parameters.
  struct Statement: Sendable, Hashable {
    let text: Text
    let types: [UInt32]
  }

  /// What a statement says.
  enum Text: Sendable, Hashable, CustomStringConvertible {
    /// A literal: it never moves, so its address stands for it.
    case fixed(StaticString)
    /// Somebody else's statement.
    case foreign(String)

    var description: String {
      switch self {
      case .fixed(let text): text.description
      case .foreign(let text): text
      }
    }

    static func == (left: Self, right: Self) -> Bool {
      switch (left, right) {
      case (.fixed(let left), .fixed(let right)): unsafe left.utf8Start == right.utf8Start
      case (.foreign(let left), .foreign(let right)): left == right
      default: false
      }
    }

    func hash(into hasher: inout Hasher) {
      switch self {
      case .fixed(let text): hasher.combine(unsafe UInt(bitPattern: text.utf8Start))
      case .foreign(let text): hasher.combine(text)
      }
    }
  }

  /// How many values a statement may have.
  private static let maximumValues = Int(clibpq_values_maximum)

  let statement: Statement
  let parameters: Parameters

  init<each Value: PostgreSQLParameter>(_ sql: StaticString, _ values: repeat each Value) {
    var types: [UInt32] = []
    var parameters = Parameters()
    for value in repeat each values {
      types.append(type(of: value).parameterType.rawValue)
      value.bind(to: &parameters)
    }
    precondition(sql.hasPointerRepresentation, "a statement of one character")
    precondition(types.count <= Self.maximumValues, "more than \(Self.maximumValues) values")
    precondition(parameters.lengths.count == types.count, "a value that is bound as another number of parameters")
    self.statement = Statement(text: .fixed(sql), types: types)
    self.parameters = parameters
  }

  /// A statement that somebody else wrote. The server finds out the types that are not declared, and refuses a statement
  /// that has another number of parameters.
  init(unescaped sql: String, _ values: [ForeignValue]) {
    precondition(values.count <= Self.maximumValues, "more than \(Self.maximumValues) values")
    var parameters = Parameters()
    for value in values { value.bind(to: &parameters) }
    statement = Statement(text: .foreign(sql), types: values.map(\.type))
    self.parameters = parameters
  }
}
