/// A token that Apple takes back on request, and with it the person's whole authorization for the app.
package protocol RevocableToken: ConfidentialText {
  /// What the kind of token is called in `token_type_hint` (RFC 7009 §2.1).
  static var hint: String { get }
}
