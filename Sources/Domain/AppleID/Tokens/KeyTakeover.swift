package import AccountEvents

/// Apple no longer accepts a key of a team's for a client, and accepts the other one, which signs from now on.
package struct KeyTakeover: Sendable, Equatable {
  /// In whose name Apple was asked.
  package let client: ClientID
  /// Whose keys they are.
  package let team: TeamID
  /// The key that Apple refused.
  package let refused: KeyID
  /// The key that signs from now on.
  package let signing: KeyID
  /// Whether that is the one that is configured as the second.
  package let isSecond: Bool

  /// A takeover from its parts.
  package init(client: ClientID, team: TeamID, refused: KeyID, signing: KeyID, isSecond: Bool) {
    (self.client, self.team, self.refused, self.signing, self.isSecond) = (client, team, refused, signing, isSecond)
  }
}
