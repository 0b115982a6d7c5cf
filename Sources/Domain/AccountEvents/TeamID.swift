/// A developer team at Apple: the scope of a subject and of a relay address.
public struct TeamID: Sendable, Hashable, CustomStringConvertible {
  /// The ten characters, such as `A1B2C3D4E5`.
  public let text: String

  /// Nil unless `text` is ten capital letters or digits.
  public init?(_ text: String) {
    guard text.utf8.count == 10, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 || 0x41...0x5a ~= $0 }) else { return nil }
    self.text = text
  }

  /// The ten characters.
  public var description: String { text }
}
