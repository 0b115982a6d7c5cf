/// What an app gets from Apple when a person signs in, to be exchanged for tokens: once, and within 5 minutes.
package struct AuthorizationCode: ConfidentialText {
  /// The code as the app got it.
  package let text: String

  /// Nil unless `text` is 1 to 4096 visible ASCII characters; Apple's have about 65.
  package init?(_ text: String) {
    guard text.isToken(upTo: 4096) else { return nil }
    self.text = text
  }
}
