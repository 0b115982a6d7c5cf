package import AccountEvents

/// Whether tokens are held that an event ends.
package struct TokenQuestion: Sendable, Hashable {
  /// Whose.
  package let account: Account
  /// Up to when they were issued.
  package let issuedUpTo: Timestamp
  /// The apps that they were issued to; nil is all.
  package let clients: Set<ClientID>?

  /// A question from its parts.
  package init(of account: Account, issuedUpTo: Timestamp, clients: Set<ClientID>?) {
    (self.account, self.issuedUpTo, self.clients) = (account, issuedUpTo, clients)
  }
}
