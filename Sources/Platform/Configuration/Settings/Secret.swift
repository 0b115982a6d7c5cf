/// A password or key: it can be used, but neither printed nor logged nor dumped.
public struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// What stands wherever a secret would be shown.
  public static let mask = "«redacted»"

  private let text: String

  /// Keeps `text` to itself.
  public init(_ text: String) { self.text = text }

  /// The secret itself, for the one who needs it.
  public var revealed: String { text }

  /// The mask.
  public var description: String { Self.mask }
  /// The mask.
  public var debugDescription: String { Self.mask }
  /// Nothing to see for `dump` and for string interpolation of what contains it.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
