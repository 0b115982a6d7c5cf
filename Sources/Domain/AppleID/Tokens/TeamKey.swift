package import AccountEvents
package import Cryptography

/// A team's own key for Sign in with Apple, with which it proves to Apple who it is.
package struct TeamKey: Sendable {
  /// The team.
  package let team: TeamID
  /// The key's name at Apple.
  package let id: KeyID
  /// The key, from the file that Apple gave.
  package let privateKey: P256PrivateKey

  /// A key from its parts.
  package init(team: TeamID, id: KeyID, privateKey: P256PrivateKey) {
    (self.team, self.id, self.privateKey) = (team, id, privateKey)
  }
}
