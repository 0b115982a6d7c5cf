/// The person behind an account, as Apple names them to one team: opaque, and personal data.
///
/// Its description is redacted, so that no log shows it by accident; `text` is the value itself.
public struct AppleSubject: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The value of `sub`, such as `000768.6166f031167141e695698239959f591a.1521`.
  public let text: String

  /// Nil unless `text` is 1 to 255 visible ASCII characters (OpenID Connect's bound) without quotation mark and
  /// backslash.
  public init?(_ text: String) {
    guard text.isIdentifier(upTo: 255) else { return nil }
    self.text = text
  }

  /// Says that there is a subject, and not which.
  public var description: String { "«subject»" }

  /// The same: whoever prints what holds one would print this.
  public var debugDescription: String { description }

  /// Nothing: a dump must not show it.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
