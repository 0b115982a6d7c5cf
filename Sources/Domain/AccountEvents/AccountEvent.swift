/// Something that happened to a person's account, believed because Apple signed it or because we saw it ourselves.
public struct AccountEvent: Sendable, Hashable {
  /// Tells this event from all others; the same whenever Apple sends it again.
  public let id: EventID
  /// The team that the app belongs to.
  public let team: TeamID
  /// The app that Apple addressed.
  public let audience: ClientID
  /// Whom it happened to.
  public let subject: AppleSubject
  /// What happened.
  public let kind: Kind
  /// When it happened (`event_time`): this decides between two events of one account, not the order of arrival. Of
  /// `credentialInvalid`: when the person signed in last for what is over now, so that whatever is newer stays.
  public let occurredAt: Timestamp
  /// When Apple signed the notification, 5 to 30 seconds after it happened; or when we found it ourselves.
  public let issuedAt: Timestamp

  /// What can happen to an account.
  public enum Kind: Sendable, Hashable {
    /// Mail to the address is forwarded again.
    case emailEnabled(RelayAddress, isPrivate: Bool)
    /// Mail to the address is rejected until it is enabled again.
    case emailDisabled(RelayAddress, isPrivate: Bool)
    /// The person no longer uses Sign in with Apple for the team's apps, or we revoked their token.
    case consentRevoked
    /// The person's Apple Account is gone, whichever of its two spellings Apple used.
    case accountDelete
    /// The person asked the app for the deletion of their account.
    case accountDeletionRequested
    /// Apple no longer takes the refresh tokens that we hold of the person, and has not told us why: we have found that
    /// ourselves, as of the sign-in that they stand for. What follows is what follows from `consentRevoked`.
    case credentialInvalid
    /// The app has changed teams, and the person with it: this account is one of theirs, at the team before or at the team
    /// that has the app now. We have found that ourselves. What becomes of mail to them, the account store knows.
    case accountTransferred
  }

  /// An event from its parts, each of them valid by its type.
  public init(
    id: EventID, team: TeamID, audience: ClientID, subject: AppleSubject, kind: Kind, occurredAt: Timestamp,
    issuedAt: Timestamp
  ) {
    (self.id, self.team, self.audience, self.subject) = (id, team, audience, subject)
    (self.kind, self.occurredAt, self.issuedAt) = (kind, occurredAt, issuedAt)
  }
}
