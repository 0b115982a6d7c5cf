package import AccountStore

/// What a consumer has decided about an event.
public struct Decision: Sendable {
  /// What was done: one of the consumer's outcomes.
  public let outcome: String
  /// What changes in the store.
  package let changes: [StoreChange]
  /// What is to be said on Kafka once that is written.
  package let announcements: [Announcement]

  /// A decision that leaves only its mark in the ledger: what there was to do is done.
  public init(_ outcome: String) { self.init(outcome, changes: [], announcements: []) }

  /// A decision with what follows from it.
  package init(_ outcome: String, changes: [StoreChange], announcements: [Announcement]) {
    (self.outcome, self.changes, self.announcements) = (outcome, changes, announcements)
  }
}
