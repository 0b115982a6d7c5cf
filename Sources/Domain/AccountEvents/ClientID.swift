/// An App ID or Services ID, such as `com.example.app`: the audience of what Apple signs.
public struct ClientID: Sendable, Hashable, CustomStringConvertible {
  /// The identifier as Apple writes it.
  public let text: String

  /// Nil unless `text` is 1 to 255 visible ASCII characters without quotation mark and backslash.
  public init?(_ text: String) {
    guard text.isIdentifier(upTo: 255) else { return nil }
    self.text = text
  }

  /// The identifier as Apple writes it.
  public var description: String { text }
}
