/// What tells one event from all others: Apple's `jti`, with an index where one notification holds several events.
public struct EventID: Sendable, Hashable, CustomStringConvertible {
  /// The identifier, such as `S25cB0PbHs6y97gYYmgydQ`.
  public let text: String

  /// Nil unless `text` is 1 to 128 visible ASCII characters without quotation mark and backslash.
  public init?(_ text: String) {
    guard text.isIdentifier(upTo: 128) else { return nil }
    self.text = text
  }

  /// The event at `index` among several of the notification `jti`: `S25cB0PbHs6y97gYYmgydQ.0`, `….1`.
  public init?(jti: EventID, index: Int) { self.init("\(jti.text).\(index)") }

  /// The identifier.
  public var description: String { text }
}
