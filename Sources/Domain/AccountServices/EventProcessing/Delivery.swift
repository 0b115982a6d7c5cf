public import AccountEvents
package import AccountStore

/// An event that a consumer is to do something about.
public struct Delivery: Sendable {
  /// What happened.
  public let event: AccountEvent
  /// Which attempt at it this is: 1 where none has failed before, whichever process tried.
  public let attempt: Int
  /// How often this process was told to wait for it.
  package let waits: Int
  /// What the store has to know of it.
  package let reference: EventReference

  /// A delivery from its parts.
  package init(event: AccountEvent, attempt: Int, waits: Int = 0, reference: EventReference) {
    (self.event, self.attempt, self.waits, self.reference) = (event, attempt, waits, reference)
  }
}
