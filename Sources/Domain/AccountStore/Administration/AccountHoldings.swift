package import AccountEvents

/// What a store holds of one account.
package struct AccountHoldings: Sendable, Hashable {
  /// Whether the account has a row: its name, sealed under a data key of its own.
  package var isKept = false
  /// The number of its tokens, sealed.
  package var tokens = 0
  /// Whether its state of mail is known; the address in it is sealed.
  package var hasMailState = false
  /// When the last event happened that erased the account; nil where none has.
  package var erasedAt: Timestamp?
  /// The number of events of our own that wait to be published, sealed.
  package var waiting = 0
  /// The number of plans of transfers between teams that it is a user of, sealed.
  package var transfers = 0
  /// The number of rows that bear the account's keyed hash and nothing else of it: ledger, fences, steps of erasures,
  /// ended authorizations. They keep an old event from having an effect.
  package var traces = 0
  /// The events of the account that consumers have settled or begun to erase.
  package var events: Set<EventID> = []
  /// The steps of its erasures that are open or retained.
  package var left: [Step] = []

  /// A target that may hold something of the account.
  package struct Step: Sendable, Hashable {
    /// The event and the target.
    package let place: OpenErasure.Place
    /// `begun`, `failed`, or `retained`.
    package let state: ErasureStep.State
  }

  /// Holdings of nobody.
  package init() {}

  /// Adds what is held under another hash of the account.
  mutating func add(_ other: AccountHoldings) {
    isKept = isKept || other.isKept
    tokens += other.tokens
    hasMailState = hasMailState || other.hasMailState
    erasedAt = [erasedAt, other.erasedAt].compactMap(\.self).max()
    waiting += other.waiting
    transfers += other.transfers
    traces += other.traces
    events.formUnion(other.events)
    left += other.left
  }
}
