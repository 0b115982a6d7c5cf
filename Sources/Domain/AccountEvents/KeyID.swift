/// The name of one of Apple's signing keys (`kid`), as Apple says it or as a token claims it: opaque, and short.
public struct KeyID: Sendable, Hashable, CustomStringConvertible {
  /// The name, such as `fh6Bs8C`.
  public let text: String

  /// Nil unless `text` is 1 to 64 visible ASCII characters without quotation mark and backslash; Apple's have 6 to 10.
  public init?(_ text: String) {
    guard text.isIdentifier(upTo: 64) else { return nil }
    self.text = text
  }

  /// The name. It comes from outside when a token claims it, but it is bounded and visible ASCII.
  public var description: String { text }
}
