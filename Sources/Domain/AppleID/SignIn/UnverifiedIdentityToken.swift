/// An identity token as it came: nothing in it is believed, and nobody is signed in by it.
package struct UnverifiedIdentityToken: ConfidentialText {
  /// The largest that is looked at, in bytes. Apple's have about 1 KiB.
  static let maximumSize = 16_384

  /// The JWS in compact form.
  package let text: String

  /// Nil unless `text` is 1 to 16384 visible ASCII characters.
  package init?(_ text: String) {
    guard text.isToken(upTo: Self.maximumSize) else { return nil }
    self.text = text
  }
}
