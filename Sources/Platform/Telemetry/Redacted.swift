/// Text that must not be seen: only how long it is remains, so that nothing can leak it.
///
/// For what comes from outside and may be personal: `["http.target": .describing(Redacted(path))]`.
public struct Redacted: Sendable, Hashable, CustomStringConvertible {
  /// How many bytes of UTF-8 the text had.
  public let count: Int

  /// Forgets the text.
  public init(_ text: some StringProtocol) { count = text.utf8.count }

  /// `«redacted, 19 bytes»`.
  public var description: String { "«redacted, \(count) bytes»" }
}
