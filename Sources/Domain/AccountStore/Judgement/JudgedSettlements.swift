import AccountEvents

/// Settlements of one transaction, judged one after the other: each by what the database had, and by what those before it
/// have come to. Then the database is asked nothing more, and all is written.
struct JudgedSettlements {
  /// A row of the ledger.
  struct LedgerRow {
    /// The settlement's place among all.
    let index: Int
    let outcome: String
    let detail: String
    /// Whether attempts at the event were counted, which are forgotten now.
    let hadAttempts: Bool
  }

  private struct Place: Hashable {
    let consumer: ConsumerName
    let event: EventID
  }

  private(set) var outcomes: [SettledOutcome] = []
  private(set) var ledger: [LedgerRow] = []
  /// The accounts of those that were applied.
  private(set) var accounts: [ChangedAccount] = []
  /// What is said of other accounts of the same people.
  private(set) var events: [SealedOutboxRecord] = []
  private var places: [AccountHash: Int] = [:]
  private var settled: [Place: LedgerEntry] = [:]

  /// Judges settlements, of which the database knows `facts`, each at its index, `kept` of those who may be erased, and
  /// the `relatives` of those whose person came to another account with an app.
  init(
    _ linked: LinkedSettlements, _ facts: [EventFacts], kept: [AccountHash: KeptAccount],
    _ relatives: Relatives, at time: Timestamp, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    let settlements = linked.all
    guard facts.count == settlements.count else { throw AccountStoreError(.damaged, "another number of facts") }
    outcomes.reserveCapacity(settlements.count)
    ledger.reserveCapacity(settlements.count)
    accounts.reserveCapacity(settlements.count)
    places.reserveCapacity(settlements.count)
    settled.reserveCapacity(settlements.count)
    var isLastApplied = false
    for (index, settlement) in settlements.enumerated() {
      let follows = linked.followers[index]
      if follows != nil, !isLastApplied { continue }
      isLastApplied = false
      let (event, consumer) = (settlement.event, settlement.consumer)
      let place = Place(consumer: consumer, event: event.id)
      var known = facts[index]
      if let entry = settled[place] { known.entry = entry }
      if let account = places[event.hash] {
        known.account = accounts[account].facts
        if accounts[account].outweighs(event, for: consumer) { known.isOutweighed = true }
      }
      var (outcome, detail) = ("", "")
      switch known.standing(of: event) {
      case .settled(let entry):
        if follows == nil { outcomes.append(.repeated(entry)) }
        continue
      case .superseded(let cause):
        outcome = cause.outcome
        if follows == nil { outcomes.append(.superseded(cause)) }
      case .open:
        guard let decided = settlement.outcome else {
          if follows == nil { outcomes.append(.open) }
          continue
        }
        (outcome, detail) = (decided, settlement.detail)
        let account = changed(event.hash, known.account, kept)
        for change in settlement.changes {
          try accounts[account].apply(change, event, keys)
          try tell(change, after: event, relatives, kept, at: time, keys)
        }
        accounts[account].raiseFence(of: event, for: consumer)
        if let follows {
          events.append(try keys.sealNewsOfMail(after: event, with: follows, at: time))
        } else {
          outcomes.append(.applied)
        }
        isLastApplied = true
      }
      settled[place] = LedgerEntry(origin: event.origin, outcome: outcome, detail: detail, at: time)
      ledger.append(
        LedgerRow(index: index, outcome: outcome, detail: detail, hadAttempts: known.attempts.count > 0))
    }
  }

  /// Whether something of an account was deleted.
  var hasErased: Bool { accounts.contains(where: \.isDeleted) }

  /// Says of another account of the person what a change says.
  private mutating func tell(
    _ change: StoreChange, after event: EventReference, _ relatives: Relatives, _ kept: [AccountHash: KeptAccount],
    at time: Timestamp, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    switch change {
    case .tellSuccessor(let kind, let apps):
      guard let successor = relatives.successors[event.hash], apps?.contains(successor.link.client) ?? true else {
        return
      }
      try say(kind, of: successor, .successor, after: event, at: time, keys)
    case .tellPredecessor(let kind, let apps, let ending):
      guard let former = relatives.predecessors[event.hash], apps?.contains(former.link.client) ?? true else { return }
      let over = ending?.union([former.link.client])
      let place = changed(former.hash, former.facts.relay.account, kept)
      accounts[place].endTokens(issuedUpTo: event.occurredAt, of: over)
      // Who has signed in to an app that stays with that team goes on there.
      if let over, !accounts[place].apps(former.facts.apps).isSubset(of: over) { return }
      try say(kind, of: former, .predecessor, after: event, at: time, keys)
    case .tellSuccessorOfMail, .setRelay, .removeRelay, .endTokens, .noteOwnRevocation, .eraseAccount, .fenceAccount:
      break
    }
  }

  /// Says something of an account, where it is known who that is.
  private mutating func say(
    _ kind: AccountEvent.Kind, of relative: Relative, _ direction: RelativeEvent.Direction, after event: EventReference,
    at time: Timestamp, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    // Of whom this transaction has left nothing, nobody knows any more who it is.
    let isGone = places[relative.hash].map { accounts[$0].isErased && !accounts[$0].isThere } ?? false
    guard !isGone, let account = relative.account else { return }
    let said = AccountEvent(
      id: RelativeEvent.id(of: kind, relative.link.account, at: event.occurredAt, direction), team: account.team,
      audience: relative.link.client, subject: account.subject, kind: kind, occurredAt: event.occurredAt,
      issuedAt: time)
    events.append(try keys.seal(said, of: relative.link.account, at: time))
  }

  /// The place of the account among those that are changed.
  private mutating func changed(
    _ hash: AccountHash, _ facts: AccountFacts, _ kept: [AccountHash: KeptAccount]
  ) -> Int {
    if let place = places[hash] { return place }
    accounts.append(ChangedAccount(hash, facts, kept: kept[hash]))
    places[hash] = accounts.count - 1
    return accounts.count - 1
  }
}

extension StoreKeys {
  /// The event that has it said anew how mail to an account is.
  fileprivate func sealNewsOfMail(
    after event: EventReference, with client: ClientID, at time: Timestamp
  ) throws(AccountStoreError) -> SealedOutboxRecord {
    let said = AccountEvent(
      id: .ofOurOwn("transferred", Array(event.id.text.utf8)), team: event.account.team, audience: client,
      subject: event.account.subject, kind: .accountTransferred, occurredAt: event.occurredAt, issuedAt: time)
    return try seal(said, of: id(of: event.account), at: time)
  }
}
