/// The e-mail address that an e-mail event speaks of, mostly one of Apple's private relay: personal data.
///
/// Its description is redacted, so that no log shows it by accident; `text` is the value itself.
public struct RelayAddress: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The address as Apple wrote it.
  public let text: String

  /// Nil unless `text` is 3 to 320 bytes without spaces and control characters, with an `@` inside.
  ///
  /// The domain is not looked at: Apple has several, and adds to them.
  public init?(_ text: String) {
    guard 3...320 ~= text.utf8.count, text.utf8.dropFirst().dropLast().contains(0x40), text.utf8.first != 0x40,
      text.utf8.last != 0x40,
      !text.unicodeScalars.contains(where: { $0.value <= 0x20 || 0x7f...0x9f ~= $0.value })
    else { return nil }
    self.text = text
  }

  /// Says that there is an address, and not which.
  public var description: String { "«address»" }

  /// The same: whoever prints what holds one would print this.
  public var debugDescription: String { description }

  /// Nothing: a dump must not show it.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
