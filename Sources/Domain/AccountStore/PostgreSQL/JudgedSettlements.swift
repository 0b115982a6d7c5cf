import AccountEvents

/// Settlements of one transaction, judged one after the other: each by what the database had, and by what those before it
/// have come to. Then the database is asked nothing more, and all is written at once.
struct JudgedSettlements {
  /// Which events a fence is for.
  struct FencePlace: Hashable {
    let consumer: ConsumerName
    let hash: AccountHash
  }

  /// A row of the ledger.
  struct LedgerRow {
    let settlement: Settlement
    let hash: AccountHash
    let outcome: String
  }

  private struct Settled: Hashable {
    let consumer: ConsumerName
    let event: EventID
  }

  private(set) var outcomes: [SettledOutcome] = []
  private(set) var ledger: [LedgerRow] = []
  private(set) var attempted: [LedgerRow] = []
  private(set) var accounts: [AccountHash: ChangedAccount] = [:]
  /// The weightiest event of each severity.
  private(set) var fences: [FencePlace: [Int: EventReference]] = [:]
  private(set) var announcements: [SealedAnnouncements] = []
  private var settled: Set<Settled> = []

  /// Judges `settlements`, of which the database knows `facts`, each at its index, and `kept` of those who may be erased;
  /// takes numbers from the first of `numbers` on, as many as there are settlements with announcements at most.
  init(
    _ settlements: [(settlement: Settlement, hash: AccountHash)], _ facts: [PostgreSQLFacts],
    kept: [AccountHash: PostgreSQLKept], numbers: [Int64], _ keys: StoreKeys
  ) throws(AccountStoreError) {
    guard facts.count == settlements.count else { throw AccountStoreError(.damaged, "another number of facts") }
    var numbers = numbers[...]
    for ((settlement, hash), facts) in zip(settlements, facts) {
      let (event, consumer) = (settlement.event, settlement.consumer)
      var account = accounts[hash] ?? ChangedAccount(hash, facts, kept: kept[hash], keys)
      var known = facts.event
      known.isSettled = known.isSettled || settled.contains(Settled(consumer: consumer, event: event.id))
      known.isOutweighed = known.isOutweighed || isOutweighed(event, hash, for: consumer)
      known.signedInAt = account.signedInAt
      known.erasure = account.erasure?.fence
      let outcome: String
      switch known.standing(of: event) {
      case .settled:
        outcomes.append(.repeated)
        continue
      case .superseded(let cause):
        outcome = cause.outcome
        outcomes.append(.superseded(cause))
      case .open:
        guard let decided = settlement.outcome else {
          outcomes.append(.open)
          continue
        }
        outcome = decided
        for change in settlement.changes { try account.apply(change, event) }
        accounts[hash] = account
        raiseFence(FencePlace(consumer: consumer, hash: hash), event)
        if settlement.announcements.isEmpty {
          outcomes.append(.applied(announcements: nil))
          break
        }
        guard let number = numbers.popFirst() else { throw AccountStoreError(.failed, "numbers are missing") }
        announcements.append(
          try SealedAnnouncements(
            settlement.announcements, number: number, of: consumer, partition: event.origin.queue,
            with: keys.announcements))
        outcomes.append(.applied(announcements: number))
      }
      settled.insert(Settled(consumer: consumer, event: event.id))
      let row = LedgerRow(settlement: settlement, hash: hash, outcome: outcome)
      ledger.append(row)
      if known.attempts > 0 { attempted.append(row) }
    }
  }

  /// Makes void what the event outweighs. One that covers less than its own severity may be older than another's fence.
  private mutating func raiseFence(_ place: FencePlace, _ event: EventReference) {
    let severity = event.weight.covers
    if let other = fences[place]?[severity],
      (other.occurredAt, other.weight.tie) >= (event.occurredAt, event.weight.tie)
    {
      return
    }
    fences[place, default: [:]][severity] = event
  }

  /// Whether one of those before makes the event void.
  private func isOutweighed(_ event: EventReference, _ hash: AccountHash, for consumer: ConsumerName) -> Bool {
    guard let fences = fences[FencePlace(consumer: consumer, hash: hash)] else { return false }
    return fences.contains { severity, other in
      severity >= event.weight.severity
        && (other.occurredAt, other.weight.tie) >= (event.occurredAt, event.weight.tie)
    }
  }
}
