/// A key for Sign in with Apple as a developer downloads it, once.
package struct DeveloperKey: Sendable {
  /// Ten capital letters and digits.
  package let id: String
  /// What is in the `.p8` file: PKCS #8 in PEM.
  package let privateKeyPEM: String

  /// A key that was downloaded.
  package init(id: String, privateKeyPEM: String) { (self.id, self.privateKeyPEM) = (id, privateKeyPEM) }
}
