import AccountEvents

/// What the store knows that bears on an event, for one consumer: all that a judgement needs, whatever the database.
struct EventFacts {
  /// The ledger has the event.
  var isSettled: Bool
  /// An event of at least its severity was applied that happened later, or at the same time with at least its tie.
  var isOutweighed: Bool
  /// The last sign-in that is known, be it from before an erasure.
  var signedInAt: Timestamp?
  /// What the account's erasures have left; nil where it never was erased.
  var erasure: ErasureFence?
  /// How many attempts have failed.
  var attempts: Int

  /// The one judgement, in the one order.
  func standing(of event: EventReference) -> EventStanding {
    if isSettled { return .settled }
    if isOutweighed { return .superseded(.newerEvent) }
    if event.yieldsTo.contains(.signIn), let signedInAt, signedInAt > event.occurredAt {
      return .superseded(.newerSignIn)
    }
    if event.yieldsTo.contains(.erasure), let erasure {
      guard let end = erasure.end(signedInAt: signedInAt), end < event.occurredAt else { return .superseded(.erased) }
    }
    return .open(attempts: attempts)
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
