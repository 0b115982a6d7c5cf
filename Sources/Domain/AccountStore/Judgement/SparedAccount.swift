import AccountEvents

/// What an erasure leaves of an account because it is younger: of somebody who has come back before the erasure was done.
/// It goes on under a new data key.
struct SparedAccount {
  /// The last sign-in; nil where the erasure covers it.
  var signedInAt: Timestamp?
  /// The tokens of later sign-ins.
  var tokens: [StoredToken] = []
  /// The state of mail, where Apple has told it later.
  var relay: RelayState?

  /// Whether there is nothing of an account.
  var isEmpty: Bool { signedInAt == nil && tokens.isEmpty && relay == nil }
}
