package import AccountEvents

/// Whom a target is to erase, and why.
package struct ErasureOrder: Sendable, Hashable {
  /// The account.
  package let account: Account
  /// The event that it follows from. The same order is given again under the same id until it is done.
  package let event: EventID
  /// What happened, as records call it: `account-delete`.
  package let reason: String
  /// When it happened.
  package let occurredAt: Timestamp

  /// An order from its parts.
  package init(account: Account, event: EventID, reason: String, occurredAt: Timestamp) {
    (self.account, self.event, self.reason, self.occurredAt) = (account, event, reason, occurredAt)
  }
}
