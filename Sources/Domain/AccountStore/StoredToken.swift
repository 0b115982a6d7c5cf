package import AccountEvents

/// A token to be kept.
package struct NewToken: Sendable, Hashable {
  /// What a token is for.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Lives until it is revoked.
    case refresh
    /// Lives for an hour.
    case access
  }

  /// What it is for.
  package let kind: Kind
  /// The app or service that it was issued to: only that one can revoke it.
  package let client: ClientID
  /// The token: secret.
  package let value: SecretToken

  /// A token from its parts.
  package init(kind: Kind, client: ClientID, value: SecretToken) {
    (self.kind, self.client, self.value) = (kind, client, value)
  }
}

/// A token as it is kept.
package struct StoredToken: Sendable, Hashable {
  /// How many refresh tokens of an app are kept for a person who signs in again and again: the newest. Each stands for the
  /// same authorization, and Apple ends all of them with any.
  static let mostOfAnApp: Int64 = 5

  /// What it is.
  package let token: NewToken
  /// When the person signed in for it.
  package let issuedAt: Timestamp
  /// What goes on with it where its row is written anew.
  var marks = ValidationMarks()

  /// A token and its time.
  package init(_ token: NewToken, issuedAt: Timestamp) { (self.token, self.issuedAt) = (token, issuedAt) }
}

/// The text of a token: whoever has it can act for the person. Its description is redacted.
package struct SecretToken: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
  /// The token itself.
  package let text: String

  /// Nil unless `text` is 1 to 4096 visible ASCII characters.
  package init?(_ text: String) {
    guard 1...4096 ~= text.utf8.count, text.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else { return nil }
    self.text = text
  }

  /// Says that there is a token, and not which.
  package var description: String { "«token»" }

  /// The same: not even a debugger shows it.
  package var debugDescription: String { description }
}
