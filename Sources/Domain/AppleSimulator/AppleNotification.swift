package import AccountEvents

/// What Apple is about to tell: all that goes into one server-to-server notification.
package struct AppleNotification: Sendable {
  /// What happened.
  package var type: NotificationType
  /// To whom.
  package var person: Person
  /// The App ID or Services ID that is told.
  package var audience: String
  /// 22 base64url characters.
  package var jti: String
  /// When it happened.
  package var occurredAt: Timestamp
  /// When it is signed: whole seconds count, and Apple takes 5 to 30 of them.
  package var issuedAt: Timestamp
  /// Whose name it is signed in.
  package var issuer: String
  /// What is to be wrong, or at least unusual.
  package var faults: [Fault]

  /// Apple's own name as an issuer.
  package static let appleIssuer = "https://appleid.apple.com"

  /// A notification from its parts.
  package init(
    type: NotificationType, person: Person, audience: String, jti: String, occurredAt: Timestamp, issuedAt: Timestamp,
    issuer: String, faults: [Fault]
  ) {
    (self.type, self.person, self.audience, self.jti) = (type, person, audience, jti)
    (self.occurredAt, self.issuedAt, self.issuer, self.faults) = (occurredAt, issuedAt, issuer, faults)
  }
}
