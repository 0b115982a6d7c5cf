/// Executions of statements that are sent together, and answered together.
public struct Batch: Sendable {
  private(set) var executions: [Execution] = []

  /// A batch of nothing.
  public init() {}

  /// How many executions there are.
  public var count: Int { executions.count }

  /// Adds an execution of the statement with these values, in the order of its parameters `$1`, `$2`….
  public mutating func append<each Value: PostgreSQLValue>(_ sql: StaticString, _ values: repeat each Value) {
    executions.append(Execution(sql, repeat each values))
  }
}

/// A statement and the values that it is to be executed with.
struct Execution: Sendable {
  /// What the server knows a prepared statement by: its text, and the types of its parameters.
  struct Statement: Sendable, Hashable {
    /// The text, and where it lies: a literal never moves, so its address stands for it.
    let text: StaticString
    let types: [UInt32]

    static func == (left: Self, right: Self) -> Bool {
      unsafe left.text.utf8Start == right.text.utf8Start && left.types == right.types
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(unsafe UInt(bitPattern: text.utf8Start))
      hasher.combine(types)
    }
  }

  let statement: Statement
  let parameters: Parameters

  init<each Value: PostgreSQLValue>(_ sql: StaticString, _ values: repeat each Value) {
    var types: [UInt32] = []
    var parameters = Parameters()
    for value in repeat each values {
      types.append(type(of: value).parameterType.rawValue)
      value.bind(to: &parameters)
    }
    precondition(sql.hasPointerRepresentation, "a statement of one character")
    precondition(parameters.lengths.count == types.count, "a value that is bound as another number of parameters")
    self.statement = Statement(text: sql, types: types)
    self.parameters = parameters
  }
}
