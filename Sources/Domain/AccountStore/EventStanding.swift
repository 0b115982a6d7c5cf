/// How an event stands for a consumer.
package enum EventStanding: Sendable, Hashable {
  /// It is to be processed; so many attempts have failed before.
  case open(attempts: Int)
  /// It was settled before: there is nothing to do.
  case settled
  /// Something else has made it void.
  case superseded(Supersession)
}

/// What made an event void.
package enum Supersession: String, Sendable, Hashable, CaseIterable {
  /// An event that outweighs it was applied.
  case newerEvent = "newer-event"
  /// The person has signed in since it happened.
  case newerSignIn = "newer-sign-in"
  /// The account was erased since it happened.
  case erased

  /// What the ledger says of the event then.
  var outcome: String { "superseded:\(rawValue)" }
}

/// What became of a settlement.
package enum SettledOutcome: Sendable, Hashable {
  /// Its effects are in the store. What there is to be said has this number; nil where there is nothing.
  case applied(announcements: Int64?)
  /// It had been settled before.
  case repeated
  /// Something else had made it void.
  case superseded(Supersession)
  /// It was to be noted as void, and is not: there is something left to do.
  case open
}

/// What became of settlements, and of what was to be forgotten with them.
package struct Settled: Sendable, Hashable {
  /// What became of each, in their order.
  package let outcomes: [SettledOutcome]
  /// The numbers of announcements that were not there any more: another process has said them, too.
  package let missing: [Int64]

  /// What became of them.
  package init(outcomes: [SettledOutcome] = [], missing: [Int64] = []) {
    (self.outcomes, self.missing) = (outcomes, missing)
  }
}
