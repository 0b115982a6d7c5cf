package import AccountEvents
package import EventLoop
import SQLite

/// The store in a file of SQLite's, for the programs of one host. Its thread makes one transaction after the other;
/// those of other processes are waited for. Mailers and applications are answered by another thread, which waits for
/// neither, or on the loop, where there is nothing to wait for.
@Loop
package final class SQLiteAccountStore: AccountStore {
  let writer: SQLiteThread<SQLiteStoreFile>
  let readers: SQLiteThread<SQLiteReader>
  let reads: SharedReads
  let commits: SharedCommits
  private nonisolated let keys: CurrentKeys

  private init(
    _ writer: SQLiteThread<SQLiteStoreFile>, _ readers: SQLiteThread<SQLiteReader>, _ keys: CurrentKeys
  ) {
    (self.writer, self.readers, self.keys) = (writer, readers, keys)
    (reads, commits) = (SharedReads(readers), SharedCommits(writer))
  }

  /// Opens the store at `path`, which `siwa store begin` has made, with the key that it was made with.
  package static func open(_ path: String, _ key: MasterKey) async throws(AccountStoreError) -> SQLiteAccountStore {
    let writer = SQLiteThread<SQLiteStoreFile>(named: "account-store")
    let keys = try await writer.open { () throws(AccountStoreError) in
      try SQLiteStoreFile(path, key)
    } _: {
      $0.current
    }
    let readers = SQLiteThread<SQLiteReader>(named: "store-readers")
    try await readers.open { () throws(AccountStoreError) in
      try SQLiteReader(path, key, keys)
    } _: { _ in
    }
    return SQLiteAccountStore(writer, readers, keys)
  }

  // MARK: Events and their effects

  /// How each event stands, all as of one moment.
  package func standings(
    of events: [EventReference], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [EventStanding] {
    try await writer.run { file throws(AccountStoreError) in
      try file.read(of: events.lazy.map(\.account)) { () throws(SQLiteError) in
        let facts = try file.ledger.facts(of: events.map { (file.keys.current($0), consumer) })
        return zip(facts, events).map { $0.standing(of: $1) }
      }
    }
  }

  /// Writes the settlements: as many as there are, the cost of a commit is the same. What is given while others are
  /// written comes behind them.
  package func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp
  ) async throws(AccountStoreError) -> Settled {
    guard !settlements.isEmpty || !marks.isEmpty else { return Settled() }
    return try await writer.run { [readers] file throws(AccountStoreError) in
      let settled = try file.settle(settlements, announced: marks, at: time)
      file.forgetErased(holdingOff: readers)
      return settled
    }
  }

  /// Claims partitions.
  package func claim(
    _ claims: [PartitionClaim], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [AnnouncedMark] {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in
        var marks: [AnnouncedMark] = []
        for claim in claims { marks.append(try file.ledger.claim(claim, for: consumer)) }
        return marks
      }
    }
  }

  /// Counts one more attempt at each.
  package func count(_ attempts: [FailedAttempt]) async throws(AccountStoreError) -> [FailedAttempts] {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in
        var counts: [FailedAttempts] = []
        for attempt in attempts { counts.append(try file.ledger.count(attempt)) }
        return counts
      }
    }
  }

  // MARK: Accounts

  /// The account's tokens, opened.
  package func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken] {
    try await writer.run { file throws(AccountStoreError) in try file.tokens(of: account) }
  }

  /// Whether there are tokens that events end.
  package func holdsTokens(_ questions: [TokenQuestion]) async throws(AccountStoreError) -> [Bool] {
    try await writer.run { file throws(AccountStoreError) in
      try file.read(of: questions.lazy.map(\.account)) { () throws(SQLiteError) in
        var answers: [Bool] = []
        for question in questions {
          answers.append(try file.accounts.holdsTokens(question, of: file.keys.hash(of: question.account)))
        }
        return answers
      }
    }
  }

  /// The authorizations that we have ended ourselves.
  package func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation] {
    try await writer.run { file throws(AccountStoreError) in
      try file.read(of: CollectionOfOne(account)) { () throws(SQLiteError) in
        try file.accounts.ownRevocations(of: file.keys.hash(of: account))
      }
    }
  }

  /// Notes what we have ended ourselves.
  package func noteOwnRevocation(
    of account: Account, for client: ClientID, at time: Timestamp
  ) async throws(AccountStoreError) {
    try await commits.run { file throws(AccountStoreError) in
      try file.write { () throws(AccountStoreError) in
        try file.move(CollectionOfOne(account))
        let hash = file.keys.hash(of: account)
        let noted = try AccountStoreError.translating { () throws(SQLiteError) in
          try file.accounts.ownRevocations(of: hash)
        }
        guard !noted.contains(where: { $0.client == client }) else { return }
        var changed = ChangedAccount(hash, AccountFacts())
        changed.note(OwnRevocation(of: client, at: time, isProven: true))
        try file.write([changed])
      }
    }
  }

  /// What is known of mail to each account, all as of one moment.
  package func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge] {
    try await reads.run { reader throws(AccountStoreError) in try reader.relayStates(of: accounts) }
  }

  // MARK: Erasure

  /// The steps of erasures.
  package func erasureSteps(of events: [EventID]) async throws(AccountStoreError) -> [[ErasureStep]] {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        var steps: [[ErasureStep]] = []
        for event in events { steps.append(try file.erasures.steps(of: event)) }
        return steps
      }
    }
  }

  /// Records steps of erasures.
  package func record(_ steps: [(step: ErasureStep, event: EventReference)]) async throws(AccountStoreError) {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in
        let keys = file.keys
        for (step, event) in steps {
          try file.erasures.record(step, of: keys.current(event), generation: keys.generation)
        }
      }
    }
  }

  /// What is open of erasures.
  package func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [OpenErasure] {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        try file.erasures.open(by: consumer, after: place, limit: limit, file.keys.hashing)
      }
    }
  }

  /// What erasures have left open that no weightier one covers.
  package func uncoveredTargets(of events: [EventReference]) async throws(AccountStoreError) -> [[String]] {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        var targets: [[String]] = []
        for event in events { targets.append(try file.erasures.uncoveredTargets(of: event, file.keys.hashing)) }
        return targets
      }
    }
  }

  /// How many erasures have failed and are not done.
  package func incompleteErasures(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.erasures.countOfIncomplete(by: consumer) }
    }
  }

  /// How many erasures a target is at work on.
  package func erasuresInProgress(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.erasures.countInProgress(by: consumer) }
    }
  }

  /// Closes steps of an erasure.
  package func discardErasure(
    of event: EventID, account: Account?, target: String?, note: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Int {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in
        try file.erasures.discard(event, of: account, target: target, note: note, at: time, file.keys.hashing)
      }
    }
  }

  /// The steps retained until that time.
  package func dueErasures(
    until time: Timestamp, of account: Account?, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [RetainedStep] {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        try file.erasures.due(until: time, of: account, after: place, limit: limit, file.keys.hashing)
      }
    }
  }

  // MARK: After a restore

  /// Whether an outcome is of this store.
  package func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    try await writer.run { file throws(AccountStoreError) in try SQLiteReconciler(file).recognizes(outcomes) }
  }

  /// Brings the store to what outcomes say.
  package func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    try await writer.run { [readers] file throws(AccountStoreError) in
      let reconciliation = try SQLiteReconciler(file).reconcile(with: outcomes, isRehearsal: isRehearsal)
      file.forgetErased(holdingOff: readers)
      return reconciliation
    }
  }

  // MARK: The store itself

  /// How large the file is, with its log.
  package func size() async throws(AccountStoreError) -> Int64 {
    try await writer.run { file throws(AccountStoreError) in try file.size() }
  }

  /// Reads, and takes the lock for writing.
  package func check() async throws(AccountStoreError) {
    try await writer.run { [readers] file throws(AccountStoreError) in
      try file.check()
      file.forgetErased(holdingOff: readers)
    }
  }

  /// The name of its first hashing key.
  package nonisolated var identity: HashKeyID { keys.value.hashing.firstID }

  /// The hash under the newest key that this process knows.
  package nonisolated func hash(of account: Account) -> AccountHash { keys.value.hash(of: account) }

  /// The hashes under all of the keys.
  package nonisolated func hashes(of account: Account) -> [AccountHash] { keys.value.hashing.hashes(of: account) }

  /// The hash under the newest key.
  package nonisolated func newest(of hash: AccountHash) -> AccountHash? { keys.value.hashing.newest(of: hash) }

  /// A code under the store's own key.
  package nonisolated func code(of request: DeletionRequest) -> String { keys.value.code(of: request) }

  /// Compares the code with the store's own.
  package nonisolated func isGenuine(_ code: String, of request: DeletionRequest) -> Bool {
    keys.value.isGenuine(code, of: request)
  }

  /// Closes the file once what was begun is done. The last connection to it folds its log into it, which one that only
  /// reads cannot.
  package func close() async {
    await commits.finish()
    await readers.close()
    await writer.close()
  }
}

extension SQLiteAccountStore {
  /// Makes the store at `path`; false where there is one.
  @discardableResult
  package static func begin(_ path: String, _ key: MasterKey) async throws(AccountStoreError) -> Bool {
    try await SQLiteStoreAdministration(path, key).begin()
  }
}
