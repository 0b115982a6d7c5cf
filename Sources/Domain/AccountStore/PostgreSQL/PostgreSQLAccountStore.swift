import AccountEvents
import Cryptography
import EventLoop
import PostgreSQL

/// The store in a database of PostgreSQL's, for the programs of many hosts.
///
/// Whoever changes something of accounts first locks their rows of `guard`, in the order of the hashes, so that nobody
/// waits for each other; then reads, in a later statement of a READ COMMITTED transaction, which sees all that was
/// committed by those who had the locks before. So what is judged holds until the commit, and the announcements of an
/// account are numbered in the order of its commits. SERIALIZABLE would need no locks, but its conflicts are found by
/// page of an index: two groups of hundreds would nearly always collide, and be judged and sealed for nothing. Advisory
/// locks would need no table, but all of a server's have to find room in a small part of its memory.
@Loop
final class PostgreSQLAccountStore: AccountStore {
  /// How long the server may work on one statement. What takes longer is stuck, as behind a lock of somebody's who is gone.
  private static let statementTimeout = Duration.seconds(30)

  let database: PostgreSQLStoreDatabase
  private nonisolated let keys: StoreKeys

  private init(_ database: PostgreSQLStoreDatabase, _ keys: StoreKeys) {
    (self.database, self.keys) = (database, keys)
  }

  /// Opens the store in the database that `connectionInfo` names, which `siwa store migrate` has made, with the key that
  /// it was made with.
  static func open(
    _ connectionInfo: String, connections: Int, _ key: MasterKey
  ) async throws(AccountStoreError) -> PostgreSQLAccountStore {
    let database = try PostgreSQLStoreDatabase(
      connectionInfo, connections: connections, statementTimeout: statementTimeout)
    do throws(AccountStoreError) {
      let keys = try await database.read { connection in
        try await connection.expectDurability()
        return try await connection.openKeys(with: key)
      }
      return PostgreSQLAccountStore(database, keys)
    } catch {
      await database.close()
      throw error
    }
  }

  /// How each event stands, all as of one moment.
  func standings(
    of events: [EventReference], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [EventStanding] {
    guard !events.isEmpty else { return [] }
    var batch = Batch.byKey
    PostgreSQLFacts.read(events.map { ($0, consumer, hash(of: $0.account)) }, in: &batch)
    let reading = batch
    let facts = try await database.read { connection in
      var facts: [PostgreSQLFacts] = []
      try await connection.run(reading) { execution, row throws(PostgreSQLError) in
        if execution == 1 { facts.append(try PostgreSQLFacts(reading: row)) }
      }
      return facts
    }
    return zip(events, facts).map { event, facts in facts.event.standing(of: event) }
  }

  /// Writes the settlements, however many there are, in three exchanges with the server: locks and facts, writes, commit.
  func settle(
    _ settlements: [Settlement], forgetting forgotten: [Int64], at time: Timestamp
  ) async throws(AccountStoreError) -> Settled {
    guard !settlements.isEmpty || !forgotten.isEmpty else { return Settled() }
    let settlements = settlements.map { (settlement: $0, hash: hash(of: $0.event.account)) }
    var batch = Batch.byKey
    batch.lock(settlements.map(\.hash))
    PostgreSQLFacts.read(
      settlements.map { ($0.settlement.event, $0.settlement.consumer, $0.hash) }, in: &batch)
    // What is superseded needs none: numbers that nobody has are no harm.
    let count = settlements.count { !$0.settlement.announcements.isEmpty }
    batch.append(
      "SELECT nextval('siwa.announcement_number') FROM generate_series(1, $1)", Int64(count))
    let erased = settlements.filter(\.settlement.erases).map(\.hash)
    if !erased.isEmpty { PostgreSQLKept.read(erased, in: &batch) }
    let reading = batch
    return try await database.write { [keys] connection in
      var facts: [PostgreSQLFacts] = []
      var numbers: [Int64] = []
      var kept: [AccountHash: PostgreSQLKept] = [:]
      try await connection.run(reading) { execution, row throws(PostgreSQLError) in
        switch execution {
        case 3: facts.append(try PostgreSQLFacts(reading: row))
        case 4: numbers.append(try row.value(0))
        case 5: try PostgreSQLKept.addRelay(reading: row, to: &kept)
        case 6: try PostgreSQLKept.addToken(reading: row, to: &kept)
        default: break
        }
      }
      let judged = try JudgedSettlements(settlements, facts, kept: kept, numbers: numbers, keys)
      var writing = Batch()
      try PostgreSQLWrites.write(judged, at: time, in: &writing)
      // The last execution, where there is one.
      writing.forget(forgotten)
      let last = writing.count - 1
      var known: Set<Int64> = []
      try await connection.run(writing) { execution, row throws(PostgreSQLError) in
        if execution == last { known.insert(try row.value(0)) }
      }
      return Settled(outcomes: judged.outcomes, missing: forgotten.filter { !known.contains($0) })
    }
  }

  /// Counts one more attempt.
  func countAttempt(_ attempt: FailedAttempt) async throws(AccountStoreError) -> Int {
    let count = try await database.write { connection in
      try await connection.first(
        """
        INSERT INTO siwa.attempt (consumer, event_id, count, first_at, last_at, cause) VALUES ($1, $2, 1, $3, $3, $4)
        ON CONFLICT (consumer, event_id) DO UPDATE
          SET count = attempt.count + 1, last_at = excluded.last_at, cause = excluded.cause
        RETURNING count
        """, attempt.consumer.text, attempt.event.id.text, attempt.time.milliseconds, attempt.cause
      ) { row throws(PostgreSQLError) in try row.value(0, as: Int64.self) }
    }
    return Int(clamping: count ?? 1)
  }

  /// When the first attempt failed.
  func firstAttempt(at event: EventID, by consumer: ConsumerName) async throws(AccountStoreError) -> Timestamp? {
    try await database.read { connection in
      try await connection.first(
        "SELECT first_at FROM siwa.attempt WHERE consumer = $1 AND event_id = $2", consumer.text, event.text
      ) { row throws(PostgreSQLError) in try row.time(0) }
    }
  }

  /// The announcements that wait.
  func waitingAnnouncements(
    of consumer: ConsumerName, partition: Int32, limit: Int
  ) async throws(AccountStoreError) -> WaitingAnnouncements {
    var waiting = WaitingAnnouncements()
    var last = Int64.min
    while true {
      let (most, start) = (limit - waiting.readable.count, last)
      let rows = try await database.read { connection in
        try await connection.query(
          """
          SELECT number, consumer, partition, records FROM siwa.announcement
          WHERE consumer = $1 AND partition = $2 AND number > $3 ORDER BY number LIMIT $4
          """, consumer.text, Int64(partition), start, Int64(most), limit: PostgreSQLStoreDatabase.limit
        ) { row throws(PostgreSQLError) in try SealedAnnouncements(reading: row) }
      }
      for row in rows {
        try waiting.add(row) { row throws(AccountStoreError) in try row.opened(with: keys.announcements) }
      }
      guard rows.count == most, waiting.readable.count < limit, let end = rows.last?.number else { return waiting }
      last = end
    }
  }

  /// The announcements of all partitions that wait.
  func waitingAnnouncements(of consumer: ConsumerName) async throws(AccountStoreError) -> WaitingAnnouncements {
    let rows = try await database.read { connection in
      try await connection.query(
        "SELECT number, consumer, partition, records FROM siwa.announcement WHERE consumer = $1 ORDER BY number",
        consumer.text, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in try SealedAnnouncements(reading: row) }
    }
    var waiting = WaitingAnnouncements()
    for row in rows {
      try waiting.add(row) { row throws(AccountStoreError) in try row.opened(with: keys.announcements) }
    }
    return waiting
  }

  /// Forgets announcements.
  @discardableResult
  func forget(announcements numbers: [Int64]) async throws(AccountStoreError) -> [Int64] {
    guard !numbers.isEmpty else { return [] }
    let known = try await database.write { connection in
      var batch = Batch.byKey
      batch.forget(numbers)
      var known: Set<Int64> = []
      try await connection.run(batch) { execution, row throws(PostgreSQLError) in
        if execution == 1 { known.insert(try row.value(0)) }
      }
      return known
    }
    return numbers.filter { !known.contains($0) }
  }

  /// Adds a sign-in with its tokens; the same again changes nothing.
  func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken]
  ) async throws(AccountStoreError) -> [NewToken] {
    let signIn = PostgreSQLSignIn(account: account, hash: hash(of: account), time: time, tokens: tokens)
    return try await database.write { [keys] connection in try await signIn.record(keys, with: connection) }
  }

  /// The account's tokens, opened.
  func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken] {
    let (keys, hash) = (keys, hash(of: account))
    return try await database.read { connection in
      try await PostgreSQLTokens.read(of: [hash], keys, with: connection)
    }
  }

  /// The authorizations that we have ended ourselves.
  func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation] {
    let hash = hash(of: account)
    return try await database.read { connection in
      try await PostgreSQLTokens.ownRevocations(of: hash, with: connection)
    }
  }

  /// What is known of mail to each account, all as of one moment.
  func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge] {
    guard !accounts.isEmpty else { return [] }
    let (keys, hashes) = (keys, accounts.map { hash(of: $0) })
    return try await database.read { connection in
      try await PostgreSQLRelays.knowledge(of: hashes, keys, with: connection)
    }
  }

  /// Whether an outcome is of this store.
  func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    try await PostgreSQLReconciler(database: database, keys: keys).recognizes(outcomes)
  }

  /// Brings the store to what outcomes say.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    try await PostgreSQLReconciler(database: database, keys: keys).reconcile(with: outcomes, isRehearsal: isRehearsal)
  }

  /// How large the tables are, with their indices and what lies apart from them.
  func size() async throws(AccountStoreError) -> Int64 {
    let size = try await database.read { connection in
      try await connection.first(
        """
        SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
        WHERE relnamespace = 'siwa'::regnamespace AND relkind = 'r'
        """
      ) { row throws(PostgreSQLError) in try row.value(0, as: Int64.self) }
    }
    return size ?? 0
  }

  /// Reads, and writes as much as a lock takes: a server that only reads refuses it.
  func check() async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute("SELECT FROM siwa.store_key FOR UPDATE SKIP LOCKED")
    }
  }

  /// The hash under the store's own key.
  nonisolated func hash(of account: Account) -> AccountHash { keys.hash(of: account) }

  /// Closes the connections once what was begun is done.
  func close() async { await database.close() }
}

extension Batch {
  /// A batch whose statements look each row up by its key. By itself the server reads whole tables for a few hundred
  /// rows, and keeps such a plan as they grow. And where this program's host is gone in the middle of a transaction, the
  /// server keeps its locks no longer than a statement may take.
  static var byKey: Batch {
    var batch = Batch()
    batch.append(
      """
      SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true),
        set_config('idle_in_transaction_session_timeout', '30s', true)
      """)
    return batch
  }

  /// Adds two executions: the accounts are locked until the transaction ends. What reads behind them sees all that those
  /// have committed who had the locks before.
  mutating func lock(_ hashes: [AccountHash]) {
    let all = PostgreSQLArray(hashes.map(\.bytes))
    append("INSERT INTO siwa.guard (hash) SELECT DISTINCT unnest($1) ORDER BY 1 ON CONFLICT DO NOTHING", all)
    append("SELECT FROM siwa.guard WHERE hash = ANY ($1) ORDER BY hash FOR UPDATE", all)
  }

  /// Adds the removal of announcements, in their order, so that nobody waits for each other; its rows are those that were
  /// there.
  mutating func forget(_ numbers: [Int64]) {
    if numbers.isEmpty { return }
    append("DELETE FROM siwa.announcement WHERE number = ANY ($1) RETURNING number", PostgreSQLArray(numbers.sorted()))
  }
}
