extension AccountEvent.Kind {
  /// What the kind is called in records, logs and metrics: `email-disabled`.
  public var name: String {
    switch self {
    case .emailEnabled: "email-enabled"
    case .emailDisabled: "email-disabled"
    case .consentRevoked: "consent-revoked"
    case .accountDelete: "account-delete"
    case .accountDeletionRequested: "account-deletion-requested"
    case .credentialInvalid: "credential-invalid"
    case .accountTransferred: "account-transferred"
    }
  }

  /// Whether the person's consent is over, and nothing more: Apple says so, or no longer takes the tokens.
  package var endsConsent: Bool { self == .consentRevoked || self == .credentialInvalid }

  /// Whether we say so ourselves: Apple has signed nothing, and a code under the account store's key vouches for it.
  package var isOurOwn: Bool {
    switch self {
    case .accountDeletionRequested, .credentialInvalid, .accountTransferred: true
    case .emailEnabled, .emailDisabled, .consentRevoked, .accountDelete: false
    }
  }
}
