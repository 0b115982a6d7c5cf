package import AccountEvents

/// Whether mail to an account may be sent, as Apple said last.
package struct RelayState: Sendable, Hashable {
  /// What Apple said.
  package enum Status: String, Sendable, Hashable, CaseIterable {
    /// Mail is forwarded.
    case enabled
    /// The person has switched forwarding off.
    case disabled
    /// The person has withdrawn consent.
    case consentRevoked = "consent-revoked"
  }

  /// What Apple said.
  package let status: Status
  /// The address; nil where only other events spoke of the account.
  package let address: RelayAddress?
  /// Whether the address is one of Apple's private relay.
  package let isPrivate: Bool
  /// When it happened (`event_time`).
  package let since: Timestamp

  /// A state from its parts.
  package init(status: Status, address: RelayAddress?, isPrivate: Bool, since: Timestamp) {
    (self.status, self.address, self.isPrivate, self.since) = (status, address, isPrivate, since)
  }
}

/// What the store knows of mail to an account.
package enum RelayKnowledge: Sendable, Hashable {
  /// Nothing was ever said.
  case unknown
  /// As Apple said last.
  case known(RelayState)
  /// The account was erased.
  case erased(since: Timestamp)
}
