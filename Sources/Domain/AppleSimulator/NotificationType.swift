/// What Apple tells about an account. The raw value is Apple's own spelling.
package enum NotificationType: String, Sendable, CaseIterable {
  /// Mail to the relay address is forwarded again.
  case emailEnabled = "email-enabled"
  /// Mail to the relay address is no longer forwarded.
  case emailDisabled = "email-disabled"
  /// The person no longer uses Sign in with Apple for the team's apps.
  case consentRevoked = "consent-revoked"
  /// The Apple Account is gone, as Apple's older text spells it.
  case accountDelete = "account-delete"
  /// The Apple Account is gone, as Apple's page spells it today.
  case accountDeleted = "account-deleted"

  /// Whether the event carries an address.
  var isAboutEmail: Bool { self == .emailEnabled || self == .emailDisabled }
}
