import AccountEvents

/// What a database knows that bears on an event, for one consumer: all that a judgement needs.
struct EventFacts {
  /// What the ledger has of the event; nil where it is not settled.
  var entry: LedgerEntry?
  /// An event of at least its severity was applied that happened later, or at the same time with at least its tie.
  var isOutweighed: Bool
  /// The attempts that have failed.
  var attempts: FailedAttempts
  /// Its account.
  var account: AccountFacts

  /// The one judgement, in the one order.
  func standing(of event: EventReference) -> EventStanding {
    if let entry { return .settled(entry) }
    if isOutweighed { return .superseded(.newerEvent) }
    let signedInAt = account.lastSignIn
    if event.yieldsTo.contains(.signIn), let signedInAt, signedInAt > event.occurredAt {
      return .superseded(.newerSignIn)
    }
    if event.yieldsTo.contains(.erasure), let erasure = account.erasure {
      guard let end = erasure.end(signedInAt: signedInAt), end < event.occurredAt else { return .superseded(.erased) }
    }
    return .open(attempts)
  }
}

/// What a database knows of an account, beside its tokens and its mail.
struct AccountFacts {
  /// A data key, as it is kept.
  struct WrappedKey {
    let bytes: [UInt8]
    let masterKeyID: String
  }

  /// Its data key; nil where nothing is kept of the account.
  var key: WrappedKey?
  /// Its last sign-in, as its row has it.
  var signedInAt: Timestamp?
  /// What its erasures have left; nil where it never was erased.
  var erasure: ErasureFence?
  /// Its last sign-in, as its last erasure has noted it.
  var erasureSignedInAt: Timestamp?

  /// Whether what was at that moment is erased.
  func isErased(at time: Timestamp) -> Bool { erasure.map { $0.at >= time } ?? false }

  /// Whether it was erased, and the person has not signed in since.
  var isErased: Bool { erasure.map { erasure in !(signedInAt.map { $0 > erasure.at } ?? false) } ?? false }

  /// The last sign-in that is known, be it from before an erasure.
  var lastSignIn: Timestamp? {
    guard let signedInAt, let erasureSignedInAt else { return signedInAt ?? erasureSignedInAt }
    return max(signedInAt, erasureSignedInAt)
  }
}

/// The fence that erasures leave.
struct ErasureFence: Equatable {
  /// What happened until then is erased.
  let at: Timestamp
  /// Whether the Apple Account itself was gone.
  let isFinal: Bool

  /// What two erasures come to, whichever was recorded first: the later one's time, and the end of the Apple Account
  /// unless the person has signed in after it.
  func merged(with other: ErasureFence, signedInAt: Timestamp?) -> ErasureFence {
    ErasureFence(
      at: max(at, other.at), isFinal: isFinal(signedInAt: signedInAt) || other.isFinal(signedInAt: signedInAt))
  }

  /// Until when what is known of the account is erased; nil is without an end: the Apple Account itself was gone, and the
  /// person has not signed in since. The one judgement of events that come after an erasure, and of an erasure that comes
  /// after them.
  func end(signedInAt: Timestamp?) -> Timestamp? { isFinal(signedInAt: signedInAt) ? nil : at }

  private func isFinal(signedInAt: Timestamp?) -> Bool { isFinal && !(signedInAt.map { $0 > at } ?? false) }
}
