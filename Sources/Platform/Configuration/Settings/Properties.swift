/// Settings whose names belong to somebody else: librdkafka's properties under `kafka`.
///
/// Names and values pass through as they are; values of secret properties are never printed.
public struct Properties: Sendable, Hashable, CustomStringConvertible {
  /// One property.
  public struct Property: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The name as its owner spells it.
    public let name: String
    /// The value as its owner reads it.
    public let value: String
    /// Whether the value must never be seen.
    public let isSecret: Bool

    /// `name=value`, a secret value masked.
    public var description: String { "\(name)=\(isSecret ? Secret.mask : value)" }
    /// Nothing to see for `dump`.
    public var customMirror: Mirror { Mirror(self, children: []) }
  }

  /// The properties, in the order of the file, then of their names.
  public private(set) var all: [Property]

  /// The given properties, of which none is secret.
  public init(_ properties: KeyValuePairs<String, String> = [:]) {
    all = properties.map { Property(name: $0.key, value: $0.value, isSecret: false) }
  }

  /// The value of a property, if it is set.
  public subscript(name: String) -> String? { all.first { $0.name == name }?.value }

  /// Names and values, as the owner of the names wants them. Contains the secrets.
  public var pairs: [(String, String)] { all.map { ($0.name, $0.value) } }

  /// Sets a property, in its old place if there was one.
  public mutating func set(_ name: String, _ value: String, isSecret: Bool = false) {
    let property = Property(name: name, value: value, isSecret: isSecret)
    if let index = all.firstIndex(where: { $0.name == name }) { all[index] = property } else { all.append(property) }
  }

  /// `name=value …`, secret values masked.
  public var description: String { all.map(\.description).joined(separator: " ") }
}
