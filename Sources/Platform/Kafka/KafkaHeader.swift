/// A header of a record. Names may repeat, and their order is kept.
public struct KafkaHeader: Sendable, Hashable {
  /// The header's name.
  public var name: String
  /// The header's bytes; nil is not the same as empty.
  public var value: [UInt8]?

  /// A header with the given bytes.
  public init(_ name: String, _ value: [UInt8]?) { (self.name, self.value) = (name, value) }

  /// A header with the UTF-8 of a text.
  public init(_ name: String, _ text: String) { (self.name, value) = (name, Array(text.utf8)) }
}
