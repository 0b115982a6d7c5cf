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
  /// What the accounts that others have become are told.
  private(set) var events: [SealedOutboxRecord] = []
  private var places: [AccountHash: Int] = [:]
  private var settled: [Place: LedgerEntry] = [:]

  /// Judges `settlements`, of which the database knows `facts`, each at its index, `kept` of those who may be erased, and
  /// the `successors` of those who came to another account with an app.
  init(
    _ settlements: [Settlement], _ facts: [EventFacts], kept: [AccountHash: KeptAccount],
    successors: [AccountHash: Successor], at time: Timestamp, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    guard facts.count == settlements.count else { throw AccountStoreError(.damaged, "another number of facts") }
    outcomes.reserveCapacity(settlements.count)
    ledger.reserveCapacity(settlements.count)
    accounts.reserveCapacity(settlements.count)
    places.reserveCapacity(settlements.count)
    settled.reserveCapacity(settlements.count)
    for (index, settlement) in settlements.enumerated() {
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
        outcomes.append(.repeated(entry))
        continue
      case .superseded(let cause):
        outcome = cause.outcome
        outcomes.append(.superseded(cause))
      case .open:
        guard let decided = settlement.outcome else {
          outcomes.append(.open)
          continue
        }
        (outcome, detail) = (decided, settlement.detail)
        let account = changed(event.hash, known.account, kept)
        for change in settlement.changes {
          try accounts[account].apply(change, event, keys)
          guard case .tellSuccessor(let kind, let apps) = change, let successor = successors[event.hash],
            apps?.contains(successor.client) ?? true
          else { continue }
          events.append(try keys.seal(kind, of: successor, after: event, at: time))
        }
        accounts[account].raiseFence(of: event, for: consumer)
        outcomes.append(.applied)
      }
      settled[place] = LedgerEntry(origin: event.origin, outcome: outcome, detail: detail, at: time)
      ledger.append(
        LedgerRow(index: index, outcome: outcome, detail: detail, hadAttempts: known.attempts.count > 0))
    }
  }

  /// Whether something of an account was deleted.
  var hasErased: Bool { accounts.contains(where: \.isDeleted) }

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

extension Settlement {
  /// Whether another account may be told.
  var tellsSuccessor: Bool {
    changes.contains { change in if case .tellSuccessor = change { true } else { false } }
  }
}

extension StoreKeys {
  /// The event that says of an account what happened to the one that it was before.
  fileprivate func seal(
    _ kind: AccountEvent.Kind, of successor: Successor, after event: EventReference, at time: Timestamp
  ) throws(AccountStoreError) -> SealedOutboxRecord {
    let account = successor.account
    let id = self.id(of: account)
    let said = AccountEvent(
      id: .ofOurOwn("successor", Array(event.id.text.utf8) + id.bytes), team: account.team,
      audience: successor.client, subject: account.subject, kind: kind, occurredAt: event.occurredAt, issuedAt: time)
    return try seal(said, of: id, at: time)
  }
}

/// The account that another one has become, with an app.
struct Successor {
  let account: Account
  let client: ClientID
}

/// The same as it is kept.
struct SealedSuccessor {
  let former: AccountHash
  let client: ClientID
  let row: SealedAccount
}

extension [SealedSuccessor] {
  /// Those that open, by what they were before.
  func opened(_ keys: StoreKeys) throws(AccountStoreError) -> [AccountHash: Successor] {
    var accounts: [AccountHash: Successor] = [:]
    for successor in self {
      do throws(AccountStoreError) {
        accounts[successor.former] = Successor(
          account: try successor.row.open(with: keys).account, client: successor.client)
      } catch {
        guard error.code == .sealBroken || error.code == .damaged else { throw error }
      }
    }
    return accounts
  }
}
