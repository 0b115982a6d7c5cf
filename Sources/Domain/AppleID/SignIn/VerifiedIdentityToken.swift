package import AccountEvents

/// A sign-in that Apple signed for one of our apps: who the person is.
///
/// Only this module can make one, and it makes one only of what `IdentityTokenVerifier` believed.
package struct VerifiedIdentityToken: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The person's account with the team of the app.
  package let account: Account
  /// The app that the person signed in to.
  package let client: ClientID
  /// When Apple signed it.
  package let issuedAt: Timestamp
  /// Until when it holds: a day later.
  package let expiresAt: Timestamp
  /// When the person was asked to prove who they are; nil where Apple does not say.
  package let authenticatedAt: Timestamp?
  /// Whether it is bound to the sign-in by the nonce that was sent. False where none was, or where Apple does not support
  /// it on the person's device.
  package let isBoundByNonce: Bool
  /// The person's e-mail address; nil where they did not share one, or have none.
  package let email: Email?
  /// Whether Apple takes the person for a real one; nil where Apple does not say, as in every sign-in but an app's first.
  package let realUserStatus: RealUserStatus?
  /// What the team that had the app before can know the person by, in the 60 days after the app changed teams.
  package let transferSubject: TransferSubject?
  /// The organization of a Managed Apple Account.
  package let organization: String?
  /// What the person of a school has consented to.
  package let scopes: [String]

  /// An e-mail address as an identity token has it.
  package struct Email: Sendable, Hashable {
    /// The address; one of Apple's private relay, or the person's own.
    package let address: RelayAddress
    /// Whether Apple knows that it is the person's.
    package let isVerified: Bool
    /// Whether it is one of Apple's private relay. Its domain does not say.
    package let isPrivate: Bool
  }

  /// Whether a person appears to be a real one.
  package enum RealUserStatus: Int64, Sendable, Hashable {
    /// The person's system cannot tell.
    case unsupported = 0
    /// Apple cannot tell.
    case unknown = 1
    /// The person appears to be a real one.
    case likelyReal = 2
  }

  /// Says for which app it is, and not who the person is.
  package var description: String { "an identity token for \(client)" }
  /// Nothing of the person for `dump`, nor for the interpolation of what contains it.
  package var customMirror: Mirror { Mirror(self, children: ["client": client]) }

  /// What claims say that were judged, in this module alone.
  init(
    account: Account, client: ClientID, issuedAt: Timestamp, expiresAt: Timestamp, authenticatedAt: Timestamp?,
    isBoundByNonce: Bool, email: Email?, realUserStatus: RealUserStatus?, transferSubject: TransferSubject?,
    organization: String?, scopes: [String]
  ) {
    (self.account, self.client) = (account, client)
    (self.issuedAt, self.expiresAt, self.authenticatedAt) = (issuedAt, expiresAt, authenticatedAt)
    (self.isBoundByNonce, self.email, self.realUserStatus) = (isBoundByNonce, email, realUserStatus)
    (self.transferSubject, self.organization, self.scopes) = (transferSubject, organization, scopes)
  }
}
