package import AccountEvents

/// What a believed identity token says of a person whose app has changed teams.
package struct TransferClaim: Sendable, Hashable {
  /// The transfer identifier.
  package let subject: TransferSubject
  /// The app that the person has signed in to.
  package let client: ClientID
  /// The address that the person has at the team; nil where they share none.
  package let address: RelayAddress?
  /// Whether the address is one of Apple's private relay.
  package let isPrivate: Bool

  /// A claim from its parts.
  package init(_ subject: TransferSubject, to client: ClientID, address: RelayAddress?, isPrivate: Bool) {
    (self.subject, self.client, self.address, self.isPrivate) = (subject, client, address, isPrivate)
  }
}

/// Whom an operator knows a person as who has come from another team.
package struct RecognizedTransfer: Sendable, Hashable {
  /// What the operator knows the user by.
  package let key: String
  /// The team that had the app before.
  package let fromTeam: TeamID
  /// The person's account there, where that is of the same store.
  package let former: AccountID?
}

/// How an account came from another team.
package struct AccountOrigin: Sendable, Hashable {
  /// The team that had the app before.
  package let fromTeam: TeamID
  /// The app.
  package let client: ClientID
  /// The person's account there, where that is of the same store: what Apple says of it is said of its successor, too.
  package let former: AccountID?

  /// An origin from its parts.
  package init(fromTeam: TeamID, with client: ClientID, former: AccountID?) {
    (self.fromTeam, self.client, self.former) = (fromTeam, client, former)
  }
}
