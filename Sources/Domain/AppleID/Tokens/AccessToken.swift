/// What comes with a refresh token and lives for an hour. It opens nothing at Apple; it can be revoked with.
package struct AccessToken: RevocableToken {
  package static let hint = "access_token"
  /// The token as Apple wrote it.
  package let text: String

  /// Nil unless `text` is 1 to 4096 visible ASCII characters; Apple's have about 65.
  package init?(_ text: String) {
    guard text.isToken(upTo: 4096) else { return nil }
    self.text = text
  }
}
