package import AccountEvents

/// A target that an erasure has begun with and not brought to its end: what may still be there of a person.
package struct OpenErasure: Sendable, Hashable {
  /// Where it stands among all: by event, and there by target.
  package struct Place: Sendable, Hashable {
    /// The event that the erasure follows from.
    package let event: EventID
    /// The target's name.
    package let target: String

    /// A place from its parts.
    package init(event: EventID, target: String) { (self.event, self.target) = (event, target) }
  }

  /// The event and the target.
  package let place: Place
  /// Whom the event happened to.
  package let account: AccountHash
  /// `begun`, where the target is being worked on or somebody was killed meanwhile, or `failed`.
  package let state: ErasureStep.State
  /// Why it has failed last; empty where it has not.
  package let cause: String
  /// How many attempts at the event have failed, whichever target it was.
  package let attempts: Int
  /// Since when it is open, as far as is known: the event's first attempt that failed, or the target's last step.
  package let since: Timestamp

  /// An open erasure from its parts.
  package init(
    _ place: Place, account: AccountHash, state: ErasureStep.State, cause: String, attempts: Int, since: Timestamp
  ) {
    (self.place, self.account, self.state, self.cause) = (place, account, state, cause)
    (self.attempts, self.since) = (attempts, since)
  }

  /// The same of the account under another hash.
  func about(_ account: AccountHash) -> OpenErasure {
    OpenErasure(place, account: account, state: state, cause: cause, attempts: attempts, since: since)
  }
}
