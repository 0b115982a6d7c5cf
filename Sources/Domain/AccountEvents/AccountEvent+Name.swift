extension AccountEvent.Kind {
  /// What the kind is called in records, logs and metrics: `email-disabled`.
  public var name: String {
    switch self {
    case .emailEnabled: "email-enabled"
    case .emailDisabled: "email-disabled"
    case .consentRevoked: "consent-revoked"
    case .accountDelete: "account-delete"
    case .accountDeletionRequested: "account-deletion-requested"
    }
  }
}
