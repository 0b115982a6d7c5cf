/// What a store forgets of events that cannot come again.
///
/// A row of the ledger, which keeps an event from being processed twice, is needed for as long as a record of the event
/// may be read: until the topics have forgotten it. What waits as a dead letter is not in the ledger yet. Whatever comes
/// from elsewhere later, such as from a spool that was away for weeks, is kept from having an effect by what is never
/// forgotten: the fences of accounts and the hashes of those who are erased.
package struct StorePruning: Sendable, Hashable {
  /// Rows of the ledger.
  package var settled = 0
  /// Steps of erasures that are at their end, with nothing retained.
  package var steps = 0
  /// Counts of attempts at events that were put aside.
  package var attempts = 0
  /// Deletions that were asked for in an app and are done.
  package var deletions = 0

  /// Nothing forgotten yet.
  package init() {}

  /// All rows.
  package var rows: Int { settled + steps + attempts + deletions }

  /// How many rows are deleted in one transaction: others wait for it.
  static let page: Int64 = 1000
}

extension StoreProgress {
  /// How many rows were found so far.
  static func counting(_ found: StorePruning) -> StoreProgress {
    StoreProgress(.counting, done: found.rows, total: found.rows)
  }

  /// How many of the rows that were found are deleted. What is settled is never younger, so there are no more.
  static func pruning(_ done: StorePruning, of found: StorePruning) -> StoreProgress {
    StoreProgress(.pruning, done: done.rows, total: max(found.rows, done.rows))
  }
}
