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
  /// Its effects are in the store. The announcements have these numbers, in their order.
  case applied(announcements: [Int64])
  /// It had been settled before.
  case repeated
  /// Something else had made it void.
  case superseded(Supersession)
  /// It was to be noted as void, and is not: there is something left to do.
  case open
}
