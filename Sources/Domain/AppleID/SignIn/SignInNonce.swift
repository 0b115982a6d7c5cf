import Cryptography

/// What an application sends to Apple with a sign-in and finds in the identity token: it binds the token to that sign-in, so
/// that one that was stolen elsewhere is worth nothing.
package struct SignInNonce: ConfidentialText {
  /// The nonce as the application made it.
  package let text: String

  /// Nil unless `text` is 1 to 512 visible ASCII characters.
  package init?(_ text: String) {
    guard text.isToken(upTo: 512) else { return nil }
    self.text = text
  }

  /// Whether the claim `nonce` is this one, or its SHA-256 in hexadecimal, which native apps usually send in its place.
  func matches(_ claim: String) -> Bool {
    claim == text || claim.lowercased() == SHA256.digest(of: [UInt8](text.utf8)).description
  }
}
