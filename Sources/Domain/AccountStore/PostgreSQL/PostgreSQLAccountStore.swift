import AccountEvents
import EventLoop
import PostgreSQL

/// The store in a database of PostgreSQL's, for the programs of many hosts.
///
/// Whoever changes something of accounts first locks their rows of `guard`, in the order of the hashes, so that nobody
/// waits for each other; then reads, in a later statement of a READ COMMITTED transaction, which sees all that was
/// committed by those who had the locks before. So what is judged holds until the commit. SERIALIZABLE would need no locks, but its conflicts are found by
/// page of an index: two groups of hundreds would nearly always collide, and be judged and sealed for nothing. Advisory
/// locks would need no table, but all of a server's have to find room in a small part of its memory.
@Loop
final class PostgreSQLAccountStore: AccountStore {
  /// How long the server may work on one statement. What takes longer is stuck, as behind a lock of somebody's who is gone.
  private static let statementTimeout = Duration.seconds(30)

  let database: PostgreSQLStoreDatabase
  let keyed: PostgreSQLKeyedDatabase
  private nonisolated let keys: CurrentKeys

  private init(_ database: PostgreSQLStoreDatabase, _ keys: StoreKeys) {
    self.database = database
    keyed = PostgreSQLKeyedDatabase(database, keys)
    self.keys = keyed.current
  }

  /// Opens the store in the database that `connectionInfo` names, which `siwa store begin` has made, with the key that
  /// it was made with. A statement may take as long as `statementTimeout`.
  static func open(
    _ connectionInfo: String, connections: Int, _ key: MasterKey,
    statementTimeout: Duration = PostgreSQLAccountStore.statementTimeout
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
    let facts = try await keyed.read(of: events.lazy.map(\.account)) { connection, keys in
      var batch = Batch.byKey
      PostgreSQLFacts.read(events.map { (keys.current($0), consumer) }, in: &batch)
      var facts: [EventFacts] = []
      try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
        if execution == 1 { facts.append(try EventFacts(reading: row)) }
      }
      return facts
    }
    return zip(events, facts).map { event, facts in facts.standing(of: event) }
  }

  /// Writes the settlements, however many there are, in three exchanges with the server: locks and facts, writes, commit.
  /// Where another account of a person is told of something, it takes a transaction more, as all accounts are locked in one
  /// order: the first one finds out which those are, and writes nothing.
  func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp
  ) async throws(AccountStoreError) -> Settled {
    guard !settlements.isEmpty || !marks.isEmpty else { return Settled() }
    var links = AccountLinks()
    return try await lockingAnew { () throws(AccountStoreError) in
      switch try await settle(settlements, announced: marks, at: time, linked: links) {
      case .settled(let settled): return settled
      case .linked(let found):
        links = found
        throw AccountStoreError.usersChanged
      }
    }
  }

  private enum Attempt: Sendable {
    case settled(Settled)
    /// Accounts are joined otherwise than was assumed. Nothing was written.
    case linked(AccountLinks)
  }

  private func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp, linked links: AccountLinks
  ) async throws(AccountStoreError) -> Attempt {
    let order = marks.indices.sorted { marks[$0].partition < marks[$1].partition }
    let others = Array(links.accounts)
    return try await keyed.write(to: settlements.lazy.map(\.event.account), and: others) { connection, keys in
      let settlements = keys.current(settlements)
      var facts: [EventFacts] = []
      var kept: [AccountHash: KeptAccount] = [:]
      var found = AccountLinks()
      if !settlements.isEmpty {
        var batch = Batch.locked
        batch.lock(settlements.map(\.event.hash) + others.map { keys.hash(of: $0) }, keys)
        let first = batch.count
        PostgreSQLFacts.read(settlements.map { ($0.event, $0.consumer) }, in: &batch)
        let erased = settlements.filter(\.erases).map(\.event.hash)
        if !erased.isEmpty { PostgreSQLFacts.readKept(erased, in: &batch) }
        let linking = batch.count
        if settlements.contains(where: \.tellsRelatives) {
          PostgreSQLArrivals.readLinks(LinkQuestion(settlements, keys), in: &batch)
        }
        try await connection.run(locked: batch, keys) { execution, row throws(PostgreSQLError) in
          if execution == first {
            facts.append(try EventFacts(reading: row))
          } else if execution == linking {
            try found.add(row)
          } else {
            try kept.add(row, of: execution - first - 1)
          }
        }
      }
      guard found == links else { return Attempt.linked(found) }
      let relatives = try await connection.relatives(links, of: settlements, keys)
      let linked = try LinkedSettlements(settlements, relatives, keys)
      if !linked.followers.isEmpty { facts = try await connection.facts(of: linked, facts) }
      let judged = try JudgedSettlements(linked, facts, kept: kept, relatives, at: time, keys)
      var writing = Batch()
      try PostgreSQLWrites.write(judged, of: linked.all, at: time, keys, in: &writing)
      // The last of all: others wait for them no longer than the commit takes.
      let firstMark = writing.count
      PostgreSQLWrites.raise(order.map { marks[$0] }, in: &writing)
      let counts = try await connection.run(writing)
      let fenced = zip(order, counts[firstMark...]).filter { $0.1 == 0 }.map(\.0).sorted()
      return Attempt.settled(Settled(outcomes: judged.outcomes, fenced: fenced.map { marks[$0] }))
    }
  }

  /// Claims partitions.
  func claim(
    _ claims: [PartitionClaim], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [AnnouncedMark] {
    let order = claims.indices.sorted { claims[$0].partition < claims[$1].partition }
    var batch = Batch()
    for index in order {
      let (partition, offset) = (claims[index].partition, claims[index].beginsAnewAt)
      batch.append(
        """
        INSERT INTO siwa.announced (consumer, topic, partition, claim, "offset", beyond)
        VALUES ($1, $2, $3, 1, coalesce($4, 0), '')
        ON CONFLICT (consumer, topic, partition) DO UPDATE
          SET claim = announced.claim + 1, "offset" = coalesce($4, announced."offset"),
            beyond = CASE WHEN $4 IS NULL THEN announced.beyond ELSE '' END
        RETURNING claim, "offset", beyond
        """, consumer.text, partition.topic, Int64(partition.partition), offset)
    }
    let writing = batch
    let marks = try await database.write { connection in
      var marks: [Int: AnnouncedMark] = [:]
      try await connection.run(writing) { execution, row throws(PostgreSQLError) in
        let index = order[execution]
        marks[index] = AnnouncedMark(
          consumer: consumer, partition: claims[index].partition, claim: try row.value(0), offset: try row.value(1),
          beyond: try row.value(2))
      }
      return marks
    }
    return claims.indices.compactMap { marks[$0] }
  }

  /// Counts one more attempt at each, in an order in which nobody waits for each other.
  func count(_ attempts: [FailedAttempt]) async throws(AccountStoreError) -> [FailedAttempts] {
    let order = attempts.indices.sorted { attempts[$0].event.id.text < attempts[$1].event.id.text }
    var batch = Batch()
    for attempt in order.map({ attempts[$0] }) {
      batch.append(
        """
        INSERT INTO siwa.attempt (consumer, event_id, count, first_at, last_at, cause) VALUES ($1, $2, 1, $3, $3, $4)
        ON CONFLICT (consumer, event_id) DO UPDATE
          SET count = attempt.count + 1, first_at = least(attempt.first_at, excluded.first_at),
            last_at = excluded.last_at, cause = excluded.cause
        RETURNING count, first_at
        """, attempt.consumer.text, attempt.event.id.text, attempt.time.milliseconds, attempt.cause)
    }
    let writing = batch
    let counts = try await database.write { connection in
      var counts: [Int: FailedAttempts] = [:]
      try await connection.run(writing) { execution, row throws(PostgreSQLError) in
        counts[order[execution]] = FailedAttempts(count: try row.count(0) ?? 0, since: try row.time(1))
      }
      return counts
    }
    return attempts.indices.compactMap { counts[$0] }
  }

  /// The account's tokens, opened.
  func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken] {
    try await keyed.read(of: CollectionOfOne(account)) { connection, keys in
      try await PostgreSQLTokens.read(of: [keys.hash(of: account)], keys, with: connection)
    }
  }

  /// Whether there are tokens that events end.
  func holdsTokens(_ questions: [TokenQuestion]) async throws(AccountStoreError) -> [Bool] {
    var rows: [(question: Int, app: String)] = []
    for (index, question) in questions.enumerated() {
      let apps = question.clients.map { $0.map(\.text) } ?? [EndedAuthorizations.everyApp]
      rows += apps.map { (index, $0) }
    }
    guard !rows.isEmpty else { return questions.map { _ in false } }
    let asked = rows
    let held = try await keyed.read(of: questions.lazy.map(\.account)) { connection, keys in
      let hashes = questions.map { keys.hash(of: $0.account).bytes }
      var held: Set<Int64> = []
      var batch = Batch.byKey
      batch.append(
        """
        SELECT DISTINCT asked.number FROM unnest($1, $2, $3, $4) AS asked (number, hash, client, at)
          JOIN siwa.token ON token.hash = asked.hash
        WHERE token.issued_at <= asked.at AND asked.client IN ('', token.client)
        """, PostgreSQLArray(asked.map { Int64($0.question) }),
        PostgreSQLArray(asked.map { hashes[$0.question] }), PostgreSQLArray(asked.map(\.app)),
        PostgreSQLArray(asked.map { questions[$0.question].issuedUpTo.milliseconds }))
      try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
        if execution == 1 { held.insert(try row.value(0)) }
      }
      return held
    }
    return questions.indices.map { held.contains(Int64($0)) }
  }

  /// The authorizations that we have ended ourselves.
  func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation] {
    try await keyed.read(of: CollectionOfOne(account)) { connection, keys in
      try await PostgreSQLTokens.ownRevocations(of: account, keys, with: connection)
    }
  }

  /// Notes what we have ended ourselves.
  func noteOwnRevocation(
    of account: Account, for client: ClientID, at time: Timestamp
  ) async throws(AccountStoreError) {
    try await keyed.write(to: CollectionOfOne(account)) { connection, keys in
      let hash = keys.hash(of: account)
      var reading = Batch.locked
      reading.lock([hash], keys)
      let first = reading.count
      PostgreSQLTokens.readOwnRevocations(of: hash, in: &reading)
      var noted: [OwnRevocation] = []
      try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        if execution == first { noted.append(try OwnRevocation(reading: row)) }
      }
      guard !noted.contains(where: { $0.client == client }) else { return }
      var changed = ChangedAccount(hash, AccountFacts())
      changed.note(OwnRevocation(of: client, at: time, isProven: true))
      var writing = Batch()
      try PostgreSQLWrites.write([changed], keys, in: &writing)
      _ = try await connection.run(writing)
    }
  }

  /// What is known of mail to each account, all as of one moment.
  func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge] {
    guard !accounts.isEmpty else { return [] }
    // Mailers do not wait for rows to be moved.
    return try await keyed.read(of: []) { connection, keys in
      try await PostgreSQLRelays.knowledge(of: accounts, keys, with: connection)
    }
  }

  /// Whether an outcome is of this store.
  func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    try await PostgreSQLReconciler(keyed: keyed).recognizes(outcomes)
  }

  /// Brings the store to what outcomes say.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    try await PostgreSQLReconciler(keyed: keyed).reconcile(with: outcomes, isRehearsal: isRehearsal)
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

  /// Reads, and writes as much as a lock takes: a server that only reads refuses it. Another server may have come first since
  /// the store was opened: one that would forget what was committed is named so. What the programs' user may not do is
  /// named, too, before an event needs it.
  func check() async throws(AccountStoreError) {
    try await keyed.write(to: []) { connection, keys in
      var batch = Batch.locked
      batch.append("SELECT FROM siwa.hash_key FOR UPDATE SKIP LOCKED")
      _ = try await connection.run(locked: batch, keys) { _, _ throws(PostgreSQLError) in }
      try await connection.expectDurability()
      try await connection.expectRights()
    }
  }

  /// The name of its first hashing key.
  nonisolated var identity: HashKeyID { keys.value.hashing.firstID }

  /// The hash under the newest key that this process knows.
  nonisolated func hash(of account: Account) -> AccountHash { keys.value.hash(of: account) }

  /// The hashes under all of the keys.
  nonisolated func hashes(of account: Account) -> [AccountHash] { keys.value.hashing.hashes(of: account) }

  /// The hash under the newest key.
  nonisolated func newest(of hash: AccountHash) -> AccountHash? { keys.value.hashing.newest(of: hash) }

  /// A code under the store's own key.
  nonisolated func code(of request: DeletionRequest) -> String { keys.value.code(of: request) }

  /// Compares the code with the store's own.
  nonisolated func isGenuine(_ code: String, of request: DeletionRequest) -> Bool {
    keys.value.isGenuine(code, of: request)
  }

  /// Closes the connections once what was begun is done.
  func close() async { await database.close() }
}

extension Batch {
  /// A batch whose statements look each row up by its key. By itself the server reads whole tables for a few hundred
  /// rows, and keeps such a plan as they grow. A plan that it is kept from has a cost for which it would compile the
  /// statement, so it is kept from that as well.
  static var byKey: Batch {
    var batch = Batch()
    batch.append(
      """
      SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
      """)
    return batch
  }

  /// Adds two executions: the accounts are locked until the transaction ends. What reads behind them sees all that those
  /// have committed who had the locks before.
  mutating func lock(_ hashes: [AccountHash], _ keys: StoreKeys) {
    let all = PostgreSQLArray(hashes.map(\.bytes))
    append(
      """
      INSERT INTO siwa.guard (hash, generation) SELECT DISTINCT unnest($1), $2 ORDER BY 1 ON CONFLICT DO NOTHING
      """, all, keys.generation)
    append("SELECT FROM siwa.guard WHERE hash = ANY ($1) ORDER BY hash FOR UPDATE", all)
  }
}

extension Connection {
  /// What bears on settlements of which some follow from others; `known` is of those others.
  fileprivate func facts(of linked: LinkedSettlements, _ known: [EventFacts]) async throws -> [EventFacts] {
    let places = linked.followers.keys.sorted()
    var batch = Batch.byKey
    PostgreSQLFacts.read(places.map { (linked.all[$0].event, linked.all[$0].consumer) }, in: &batch)
    var following: [EventFacts] = []
    try await run(batch) { execution, row throws(PostgreSQLError) in
      if execution == 1 { following.append(try EventFacts(reading: row)) }
    }
    var facts = known
    guard following.count == places.count else { throw AccountStoreError(.damaged, "another number of facts") }
    for (place, fact) in zip(places, following) { facts.insert(fact, at: place) }
    return facts
  }
}

extension [AccountHash: KeptAccount] {
  /// Adds a row of one of the two executions that read what is kept.
  mutating func add(_ row: borrowing Row, of execution: Int) throws(PostgreSQLError) {
    switch execution {
    case 0: self[try row.hash(4), default: KeptAccount()].relay = try SealedRelay(reading: row)
    case 1:
      var token = try SealedToken(reading: row)
      token.marks = ValidationMarks(
        claimedAt: try row.timeIfPresent(5), validatedAt: try row.timeIfPresent(6),
        invalidAt: try row.timeIfPresent(7))
      self[try row.hash(4), default: KeptAccount()].tokens.append(token)
    default: break
    }
  }
}

extension SourcePartition {
  /// An order in which everybody locks partitions.
  fileprivate static func < (one: SourcePartition, other: SourcePartition) -> Bool {
    (one.topic, one.partition) < (other.topic, other.partition)
  }
}
