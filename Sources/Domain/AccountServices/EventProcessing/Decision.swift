package import AccountStore

/// What a consumer has decided about an event.
public struct Decision: Sendable {
  /// What was done: one of the consumer's outcomes.
  public let outcome: String
  /// What the ledger keeps beside it, for what is announced to be composed from: no personal data.
  package let detail: String
  /// What changes in the store.
  package let changes: [StoreChange]
  /// Steps of an erasure that were not recorded yet.
  package let steps: [ErasureStep]

  /// A decision that leaves only its mark in the ledger: what there was to do is done.
  public init(_ outcome: String) { self.init(outcome, changes: []) }

  /// A decision with what follows from it.
  package init(_ outcome: String, detail: String = "", changes: [StoreChange], steps: [ErasureStep] = []) {
    (self.outcome, self.detail, self.changes, self.steps) = (outcome, detail, changes, steps)
  }
}
