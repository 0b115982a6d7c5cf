package import AccountEvents

/// What a believed identity token says of a person whose app has changed teams.
package struct TransferClaim: Sendable, Hashable {
  /// The transfer identifier.
  package let subject: TransferSubject
  /// The address that the person has at the team; nil where they share none.
  package let address: RelayAddress?
  /// Whether the address is one of Apple's private relay.
  package let isPrivate: Bool

  /// A claim from its parts.
  package init(_ subject: TransferSubject, address: RelayAddress?, isPrivate: Bool) {
    (self.subject, self.address, self.isPrivate) = (subject, address, isPrivate)
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
  /// The person's account there, where that is of the same store: what Apple says of it is said of its successor, too.
  package let former: AccountID?

  /// An origin from its parts.
  package init(fromTeam: TeamID, former: AccountID?) { (self.fromTeam, self.former) = (fromTeam, former) }
}
