/// The name under which consumers share the partitions of a topic, and under which the cluster keeps how far they are.
public struct ConsumerGroup: Sendable, Hashable, CustomStringConvertible {
  /// The property `group.id`.
  public let name: String

  /// A group of that name.
  public init(_ name: String) { self.name = name }

  /// The name.
  public var description: String { name }
}
