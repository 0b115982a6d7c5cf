/// An identity token as it came: nothing in it is believed, and nobody is signed in by it.
package struct UnverifiedIdentityToken: ConfidentialText {
  /// The JWS in compact form.
  package let text: String

  /// Nil unless `text` is 1 to 16384 visible ASCII characters.
  package init?(_ text: String) {
    guard text.isToken(upTo: 16_384) else { return nil }
    self.text = text
  }
}
