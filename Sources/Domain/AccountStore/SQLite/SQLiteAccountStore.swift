package import AccountEvents
package import EventLoop

/// The store in a file of SQLite's, for the programs of one host. Its thread makes one transaction after the other;
/// those of other processes are waited for.
@Loop
package final class SQLiteAccountStore: AccountStore {
  let keeper: SQLiteStoreKeeper
  private nonisolated let keys: StoreKeys

  private init(_ keeper: SQLiteStoreKeeper, _ keys: StoreKeys) { (self.keeper, self.keys) = (keeper, keys) }

  /// Opens the store at `path`, which `siwa store migrate` has made, with the key that it was made with.
  package static func open(_ path: String, _ key: MasterKey) async throws(AccountStoreError) -> SQLiteAccountStore {
    let keeper = SQLiteStoreKeeper()
    return SQLiteAccountStore(keeper, try await keeper.open(path, key))
  }

  /// How each event stands, all as of one moment.
  package func standings(
    of events: [EventReference], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [EventStanding] {
    let events = events.map { ($0, hash(of: $0.account)) }
    return try await keeper.run { file throws(AccountStoreError) in try file.standings(of: events, for: consumer) }
  }

  /// Writes the settlements: as many as there are, the cost of a commit is the same.
  package func settle(
    _ settlements: [Settlement], forgetting numbers: [Int64], at time: Timestamp
  ) async throws(AccountStoreError) -> Settled {
    guard !settlements.isEmpty || !numbers.isEmpty else { return Settled() }
    return try await keeper.run { [keys] file throws(AccountStoreError) in
      // Here and not on the loop, which has the next group to get ready meanwhile.
      let settlements = settlements.map { ($0, keys.hash(of: $0.event.account)) }
      return try file.settle(settlements, forgetting: numbers, at: time)
    }
  }

  /// Counts one more attempt.
  package func countAttempt(_ attempt: FailedAttempt) async throws(AccountStoreError) -> Int {
    try await keeper.run { file throws(AccountStoreError) in try file.count(attempt) }
  }

  /// When the first attempt failed.
  package func firstAttempt(
    at event: EventID, by consumer: ConsumerName
  ) async throws(AccountStoreError) -> Timestamp? {
    try await keeper.run { file throws(AccountStoreError) in try file.firstAttempt(at: event, by: consumer) }
  }

  /// The announcements that wait.
  package func waitingAnnouncements(
    of consumer: ConsumerName, partition: Int32, limit: Int
  ) async throws(AccountStoreError) -> WaitingAnnouncements {
    try await keeper.run { file throws(AccountStoreError) in
      try file.announcements(of: consumer, partition: partition, limit: limit)
    }
  }

  /// The announcements of all partitions that wait.
  package func waitingAnnouncements(
    of consumer: ConsumerName
  ) async throws(AccountStoreError) -> WaitingAnnouncements {
    try await keeper.run { file throws(AccountStoreError) in try file.announcements.readAll(of: consumer) }
  }

  /// Forgets announcements.
  @discardableResult
  package func forget(announcements numbers: [Int64]) async throws(AccountStoreError) -> [Int64] {
    guard !numbers.isEmpty else { return [] }
    return try await keeper.run { file throws(AccountStoreError) in try file.forget(numbers) }
  }

  /// Adds a sign-in with its tokens; the same again changes nothing.
  package func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken]
  ) async throws(AccountStoreError) -> [NewToken] {
    let hash = hash(of: account)
    return try await keeper.run { file throws(AccountStoreError) in
      try file.recordSignIn(account, hash, at: time, tokens)
    }
  }

  /// The account's tokens, opened.
  package func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken] {
    let hash = hash(of: account)
    return try await keeper.run { file throws(AccountStoreError) in try file.tokens(of: hash) }
  }

  /// The authorizations that we have ended ourselves.
  package func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation] {
    let hash = hash(of: account)
    return try await keeper.run { file throws(AccountStoreError) in try file.ownRevocations(of: hash) }
  }

  /// What is known of mail to each account, all as of one moment.
  package func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge] {
    let hashes = accounts.map { hash(of: $0) }
    return try await keeper.run { file throws(AccountStoreError) in try file.relayStates(of: hashes) }
  }

  /// The steps of erasures.
  package func erasureSteps(of events: [EventID]) async throws(AccountStoreError) -> [[ErasureStep]] {
    try await keeper.run { file throws(AccountStoreError) in try file.erasureSteps(of: events) }
  }

  /// Records steps of erasures.
  package func record(_ steps: [(step: ErasureStep, event: EventReference)]) async throws(AccountStoreError) {
    try await keeper.run { [keys] file throws(AccountStoreError) in
      try file.record(steps.map { ($0.step, $0.event.id, keys.hash(of: $0.event.account)) })
    }
  }

  /// What is open of erasures.
  package func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [OpenErasure] {
    try await keeper.run { file throws(AccountStoreError) in
      try file.openErasures(by: consumer, after: place, limit: limit)
    }
  }

  /// How many erasures have failed and are not done.
  package func incompleteErasures(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await keeper.run { file throws(AccountStoreError) in try file.incompleteErasures(by: consumer) }
  }

  /// How many erasures a target is at work on.
  package func erasuresInProgress(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await keeper.run { file throws(AccountStoreError) in try file.erasuresInProgress(by: consumer) }
  }

  /// Closes steps of an erasure.
  package func discardErasure(
    of event: EventID, target: String?, note: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Int {
    try await keeper.run { file throws(AccountStoreError) in
      try file.discardErasure(of: event, target: target, note: note, at: time)
    }
  }

  /// The steps retained until that time.
  package func dueErasures(
    until time: Timestamp, of account: AccountHash?, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [RetainedStep] {
    try await keeper.run { file throws(AccountStoreError) in
      try file.dueErasures(until: time, of: account, after: place, limit: limit)
    }
  }

  /// Whether an outcome is of this store.
  package func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    try await keeper.run { file throws(AccountStoreError) in try SQLiteReconciler(file).recognizes(outcomes) }
  }

  /// Brings the store to what outcomes say.
  package func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    try await keeper.run { file throws(AccountStoreError) in
      try SQLiteReconciler(file).reconcile(with: outcomes, isRehearsal: isRehearsal)
    }
  }

  /// How large the file is, with its log.
  package func size() async throws(AccountStoreError) -> Int64 {
    try await keeper.run { file throws(AccountStoreError) in try file.size() }
  }

  /// Reads, and takes the lock for writing.
  package func check() async throws(AccountStoreError) {
    try await keeper.run { file throws(AccountStoreError) in try file.check() }
  }

  /// The hash under the store's own key.
  package nonisolated func hash(of account: Account) -> AccountHash { keys.hash(of: account) }

  /// Closes the file once what was begun is done.
  package func close() async { await keeper.close() }
}

extension SQLiteAccountStore {
  /// Makes the store at `path`, or brings it to this program's version. Returns the version that it had: 0 where there
  /// was nothing.
  package static func migrate(_ path: String, _ key: MasterKey) async throws(AccountStoreError) -> Int {
    try await SQLiteStoreAdministration(path, key).migrate().from
  }
}
