package import AccountEvents

/// What the ledger says of an event that is settled: all that its announcements are composed from, beside the event.
package struct LedgerEntry: Sendable, Hashable {
  /// Where the record stood that it was settled from. Another record of the same event is a duplicate, and nothing is
  /// announced of that. Nil of what was settled by a version that announced from a table of its own: that is announced.
  package let origin: EventOrigin?
  /// What was done, or `superseded:…`.
  package let outcome: String
  /// What the settlement kept beside it.
  package let detail: String
  /// When it was settled.
  package let at: Timestamp

  /// An entry from its parts.
  package init(origin: EventOrigin?, outcome: String, detail: String, at: Timestamp) {
    (self.origin, self.outcome, self.detail, self.at) = (origin, outcome, detail, at)
  }

  /// An entry as a database keeps it: an older version kept no detail, and of what it settled nothing is composed.
  init(at: Timestamp, outcome: String, detail: String?, origin: EventOrigin) {
    self.init(origin: detail == nil ? nil : origin, outcome: outcome, detail: detail ?? "", at: at)
  }
}
