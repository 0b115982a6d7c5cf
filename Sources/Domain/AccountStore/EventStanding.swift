package import AccountEvents

/// How an event stands for a consumer.
package enum EventStanding: Sendable, Hashable {
  /// It is to be processed; so many attempts have failed before.
  case open(FailedAttempts)
  /// It was settled before; what follows from it may not have been announced.
  case settled(LedgerEntry)
  /// Something else has made it void.
  case superseded(Supersession)
}

/// Attempts at an event that have failed.
package struct FailedAttempts: Sendable, Hashable {
  /// How many.
  package var count: Int
  /// When the first of them failed; nil where none has.
  package var since: Timestamp?

  /// None, or some.
  package init(count: Int = 0, since: Timestamp? = nil) { (self.count, self.since) = (count, since) }
}

/// What made an event void.
package enum Supersession: String, Sendable, Hashable, CaseIterable {
  /// An event that outweighs it was applied.
  case newerEvent = "newer-event"
  /// The person has signed in since it happened.
  case newerSignIn = "newer-sign-in"
  /// The account was erased since it happened.
  case erased

  private static let prefix = "superseded:"

  /// What the ledger says of the event then.
  package var outcome: String { Self.prefix + rawValue }

  /// Nil where the ledger's outcome is a consumer's own.
  package init?(outcome: String) {
    guard outcome.hasPrefix(Self.prefix) else { return nil }
    self.init(rawValue: String(outcome.dropFirst(Self.prefix.count)))
  }
}

/// What became of a settlement.
package enum SettledOutcome: Sendable, Hashable {
  /// Its effects are in the store, and this is in the ledger.
  case applied
  /// It had been settled before.
  case repeated(LedgerEntry)
  /// Something else had made it void.
  case superseded(Supersession)
  /// It was to be noted as void, and is not: there is something left to do.
  case open
}

/// What became of settlements, and of the marks that were to be raised with them.
package struct Settled: Sendable, Hashable {
  /// What became of each, in their order.
  package let outcomes: [SettledOutcome]
  /// The marks that were not raised: another process has claimed their partitions.
  package let fenced: [AnnouncedMark]

  /// What became of them.
  package init(outcomes: [SettledOutcome] = [], fenced: [AnnouncedMark] = []) {
    (self.outcomes, self.fenced) = (outcomes, fenced)
  }
}
