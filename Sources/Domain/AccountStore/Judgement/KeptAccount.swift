import AccountEvents

/// What a database keeps of an account that may be erased, beside its row: what is younger than the erasure goes on.
struct KeptAccount {
  /// The state of mail.
  var relay: SealedRelay?
  /// The tokens, oldest first.
  var tokens: [SealedToken] = []
}

extension Settlement {
  /// Whether all that is kept of the account may go.
  var erases: Bool {
    changes.contains { change in if case .eraseAccount = change { true } else { false } }
  }
}
