/// A JSON value to be written: small documents, built in one expression.
///
/// ```swift
/// let answer: JSONValue = ["err": "invalid_key", "description": .string(description)]
/// ```
public enum JSONValue: Sendable, Hashable {
  /// Members in the order in which `bytes` writes them. No name may come twice.
  indirect case object([Member])
  /// Elements in their order.
  indirect case array([JSONValue])
  /// Text.
  case string(String)
  /// An integer: other numbers nobody here needs. Beyond 2⁵³ − 1 readers would not agree about it.
  case integer(Int64)
  /// `true` or `false`.
  case boolean(Bool)
  /// `null`.
  case null

  /// A name and its value.
  public struct Member: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The value.
    public let value: JSONValue

    /// A name and its value.
    public init(_ name: String, _ value: JSONValue) { (self.name, self.value) = (name, value) }
  }
}

extension JSONValue: ExpressibleByDictionaryLiteral {
  /// An object with its members in the order of the literal.
  public init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements.map(Member.init)) }
}

extension JSONValue: ExpressibleByArrayLiteral {
  /// An array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
}

extension JSONValue: ExpressibleByStringLiteral {
  /// Text.
  public init(stringLiteral value: String) { self = .string(value) }
}

extension JSONValue: ExpressibleByIntegerLiteral {
  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension JSONValue: ExpressibleByBooleanLiteral {
  /// `true` or `false`.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
}
