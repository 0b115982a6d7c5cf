package import AccountEvents

/// A notification that Apple signed for one of our apps: an obligation.
///
/// Only this module can make one, and it makes one only of what `NotificationVerifier` believed.
package struct VerifiedNotification: Sendable {
  /// Apple's `jti`: the same whenever Apple sends the notification again.
  package let id: EventID
  /// The team that the app belongs to.
  package let team: TeamID
  /// The app that Apple addressed.
  package let audience: ClientID
  /// When Apple signed it.
  package let issuedAt: Timestamp
  /// The key that it verified with.
  package let signingKey: AppleSigningKey
  /// What it tells, at least one event, in Apple's order.
  package let events: [Event]
  /// The compact JWS as it was received, by which anyone can verify it again.
  package let jws: [UInt8]

  /// One event of a notification.
  package enum Event: Sendable, Hashable {
    /// We know what it says.
    case known(AccountEvent)
    /// Apple signed it for us, but we cannot act on it: it is kept until someone decides.
    case quarantined(QuarantinedEvent)
  }

  init(
    id: EventID, team: TeamID, audience: ClientID, issuedAt: Timestamp, signingKey: AppleSigningKey, events: [Event],
    jws: [UInt8]
  ) {
    (self.id, self.team, self.audience, self.issuedAt) = (id, team, audience, issuedAt)
    (self.signingKey, self.events, self.jws) = (signingKey, events, jws)
  }
}
