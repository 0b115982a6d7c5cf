/// The name of a consumer: of its group, its row in the ledger, its dead letters and its metrics.
public struct ConsumerName: Sendable, Hashable, CustomStringConvertible {
  /// The name, such as `token-revoker`.
  public let text: String

  /// Nil unless `text` is 1 to 40 small letters, digits and hyphens, and begins with a letter.
  public init?(_ text: String) {
    guard 1...40 ~= text.utf8.count, let first = text.utf8.first, 0x61...0x7a ~= first,
      text.utf8.allSatisfy({ 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2d })
    else { return nil }
    self.text = text
  }

  /// The name.
  public var description: String { text }

  /// The consumer that keeps whether mail may be sent.
  package static let emailRelay: ConsumerName = "email-relay"
}

extension ConsumerName: ExpressibleByStringLiteral {
  /// The name as it stands in the code; it must be one.
  public init(stringLiteral text: String) {
    guard let name = ConsumerName(text) else { preconditionFailure("\(text) cannot be a consumer's name") }
    self = name
  }
}
