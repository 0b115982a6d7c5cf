public import AccountEvents
package import AccountStore

/// An event that a consumer is to do something about.
public struct Delivery: Sendable {
  /// What happened.
  public let event: AccountEvent
  /// The attempts at it that have failed, whichever process tried.
  package let failed: FailedAttempts
  /// How often this process was told to wait for it.
  package let waits: Int
  /// What the store has to know of it.
  package let reference: EventReference

  /// Which attempt at it this is: 1 where none has failed before, whichever process tried.
  public var attempt: Int { failed.count + 1 }

  /// A delivery from its parts.
  package init(
    event: AccountEvent, failed: FailedAttempts = FailedAttempts(), waits: Int = 0, reference: EventReference
  ) {
    (self.event, self.failed, self.waits, self.reference) = (event, failed, waits, reference)
  }
}
