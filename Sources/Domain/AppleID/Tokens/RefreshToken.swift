/// What stands for a person's authorization of an app, until it is revoked: it does not age.
///
/// It belongs to the client to which it was issued, and is worth nothing with another one's name.
package struct RefreshToken: RevocableToken {
  package static let hint = "refresh_token"
  /// The token as Apple wrote it.
  package let text: String

  /// Nil unless `text` is 1 to 4096 visible ASCII characters; Apple's have about 65.
  package init?(_ text: String) {
    guard text.isToken(upTo: 4096) else { return nil }
    self.text = text
  }
}
