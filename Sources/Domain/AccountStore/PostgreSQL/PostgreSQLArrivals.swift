import AccountEvents
import EventLoop
import PostgreSQL

/// How the rows of accounts that came from other teams are read and written.
enum PostgreSQLArrivals {
  /// What is read of arrivals, by execution.
  struct Reading {
    var plans: [Int64: SealedTransferPlan] = [:]
    var users: [(plan: Int64, row: TransferRow)] = []
    var facts = ArrivalFacts()

    /// Adds a row of one of the five executions.
    mutating func add(_ row: borrowing Row, of execution: Int) throws(PostgreSQLError) {
      switch execution {
      case 0:
        let plan = try SealedTransferPlan(reading: row)
        if !plan.plan.isBeingRemoved { plans[plan.number] = plan }
      case 1: users.append((try row.value(7), try TransferRow(reading: row)))
      case 2:
        guard let account = AccountID(bytes: try row.value(0)) else { throw .unexpectedValue("an account") }
        let origin = try AccountOrigin(reading: row, from: 1)
        facts.origins[account] = origin
        if let former = origin.former {
          facts.successors[former] = account
          facts.joinedAt[account] = try row.time(4)
        }
      case 3:
        facts.accounts[try row.hash(10)] = RelayFacts(
          relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
      case 4:
        guard let client = ClientID(try row.value(1)) else { throw .unexpectedValue("a token's client") }
        facts.apps[try row.hash(0), default: [:]][client] = try row.time(2)
      default: break
      }
    }

    /// The users who have an identifier.
    func users(of identifier: [UInt8]) -> [PlannedUser] {
      users.filter { $0.row.identifier == identifier }
        .compactMap { user in plans[user.plan].map { PlannedUser(plan: $0, row: user.row) } }
    }
  }

  /// Adds five executions: the plans of a side, or all, which nobody adds users to until the transaction ends, the users
  /// who have these identifiers, how these accounts came or what they have become, what is known of them, and the apps of
  /// their tokens. Whoever comes by a plan of one side asks for those of the other alone.
  static func read(
    _ identifiers: [[UInt8]], in side: TransferPlan.Side?, _ accounts: [AccountID], _ keys: StoreKeys,
    in batch: inout Batch
  ) {
    batch.append(
      """
      SELECT name, side, team, other_team, client, created_at, accepted_at, tried_at, number, last_user, master_key_id,
        data_key
      FROM siwa.transfer_plan WHERE side = coalesce($1, side) ORDER BY number FOR SHARE
      """, side?.rawValue)
    batch.append(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person, plan FROM siwa.transfer_user
      WHERE identifier = ANY ($1) ORDER BY plan, number FOR UPDATE
      """, PostgreSQLArray(identifiers))
    let ids = PostgreSQLArray(accounts.map(\.bytes))
    let hashes = PostgreSQLArray(accounts.map { keys.hash(of: $0).bytes })
    batch.append(
      """
      SELECT account, from_team, former, client, at FROM siwa.transferred_account WHERE account = ANY ($1)
      UNION SELECT account, from_team, former, client, at FROM siwa.transferred_account WHERE former = ANY ($1)
      """, ids)
    batch.append(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at, asked.hash
      FROM unnest($1) AS asked (hash) LEFT JOIN siwa.relay USING (hash) LEFT JOIN siwa.account USING (hash)
        LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
      """, hashes)
    readApps(of: hashes, in: &batch)
  }

  /// Adds an execution that reads the apps of which tokens of accounts are held that are not known to be invalid, and when
  /// the newest of each was issued.
  static func readApps(of hashes: PostgreSQLArray<[UInt8]>, in batch: inout Batch) {
    batch.append(
      """
      SELECT hash, client, max(issued_at) FROM siwa.token WHERE hash = ANY ($1) AND invalid_at IS NULL
      GROUP BY hash, client
      """, hashes)
  }

  /// Adds an execution that reads what accounts have become, and what that has become, and what they were before.
  static func readLinks(_ question: LinkQuestion, in batch: inout Batch) {
    batch.append(
      """
      WITH RECURSIVE later (account, former, client, at, step) AS (
        SELECT account, former, client, at, 1 FROM siwa.transferred_account WHERE former = ANY ($1)
        UNION SELECT next.account, next.former, next.client, next.at, step + 1
          FROM later JOIN siwa.transferred_account AS next ON next.former = later.account WHERE step < $3)
      SELECT account, former, client, at FROM later
      UNION SELECT account, former, client, at FROM siwa.transferred_account
        WHERE account = ANY ($2) AND former IS NOT NULL
      """, PostgreSQLArray(question.successors.map(\.bytes)), PostgreSQLArray(question.predecessors.map(\.bytes)),
      Int64(LinkQuestion.mostSteps))
  }

  /// Adds what arrivals have come to.
  static func write(
    _ judged: JudgedArrivals, _ keys: StoreKeys, in batch: inout Batch
  ) throws(AccountStoreError) {
    try PostgreSQLWrites.write(Array(judged.accounts.values), keys, in: &batch)
    PostgreSQLWrites.writeFences(of: Array(judged.accounts.values), in: &batch)
    for (account, joined) in judged.origins {
      // It has come back from what it had become.
      batch.append("DELETE FROM siwa.transferred_account WHERE former = $1", account.bytes)
      batch.append(
        """
        INSERT INTO siwa.transferred_account (account, from_team, client, former, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account) DO UPDATE
          SET from_team = excluded.from_team, client = excluded.client, former = excluded.former, at = excluded.at
        """, account.bytes, joined.origin.fromTeam.text, joined.origin.client.text, joined.origin.former?.bytes,
        joined.at.milliseconds)
    }
    for event in judged.events { batch.add(event) }
  }
}

extension Connection {
  /// The accounts of before of those who have these identifiers and go to that team.
  func formerAccounts(of identifiers: [[UInt8]], to team: TeamID) async throws -> [AccountID] {
    if identifiers.isEmpty { return [] }
    return try await query(
      """
      SELECT account FROM siwa.transfer_user
      WHERE identifier = ANY ($1) AND account IS NOT NULL
        AND plan + 0 IN (SELECT number FROM siwa.transfer_plan WHERE side = 'sending' AND other_team = $2)
      """, PostgreSQLArray(identifiers), team.text, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in AccountID(bytes: try row.value(0)) }.compactMap(\.self)
  }

  /// The other accounts of the people of whom something is said, which are locked.
  func relatives(
    _ links: AccountLinks, of settlements: [Settlement], _ keys: StoreKeys
  ) async throws -> Relatives {
    let ids = Array(links.accounts)
    if ids.isEmpty { return Relatives() }
    let places = Dictionary(ids.map { (keys.hash(of: $0), $0) }) { first, _ in first }
    let hashes = PostgreSQLArray(places.keys.map(\.bytes))
    var batch = Batch.byKey
    batch.append(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at, asked.hash,
        team, subject
      FROM unnest($1) AS asked (hash) LEFT JOIN siwa.relay USING (hash) LEFT JOIN siwa.account USING (hash)
        LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
      """, hashes)
    PostgreSQLArrivals.readApps(of: hashes, in: &batch)
    var facts: [AccountID: RelativeFacts] = [:]
    try await run(batch) { execution, row throws(PostgreSQLError) in
      switch execution {
      case 1:
        let hash = try row.hash(10)
        guard let id = places[hash] else { return }
        let relay = RelayFacts(relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
        facts[id, default: RelativeFacts()].relay = relay
        guard let key = relay.account.key else { return }
        facts[id]?.row = SealedAccount(hash: hash, team: try row.value(11), subject: try row.value(12), key: key)
      case 2:
        guard let client = ClientID(try row.value(1)) else { throw .unexpectedValue("a token's client") }
        if let id = places[try row.hash(0)] { facts[id, default: RelativeFacts()].apps[client] = try row.time(2) }
      default: break
      }
    }
    for id in ids where facts[id]?.row == nil {
      facts[id, default: RelativeFacts()].planned = try await plannedUsers(as: [id]).sentAccount(keys)
    }
    return try Relatives(links, facts, of: settlements, keys)
  }

  /// The users who have these accounts, but for those with a conflict.
  func plannedUsers(as accounts: [AccountID]) async throws -> [PlannedUser] {
    let rows = try await query(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person, plan FROM siwa.transfer_user
      WHERE account = ANY ($1) AND state <> 'conflict' ORDER BY plan, number
      """, PostgreSQLArray(accounts.map(\.bytes)), limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in (row: try TransferRow(reading: row), plan: try row.value(7, as: Int64.self)) }
    if rows.isEmpty { return [] }
    let plans = try await transferPlans()
    return rows.compactMap { user in
      plans.first { $0.number == user.plan }.map { PlannedUser(plan: $0, row: user.row) }
    }
  }
}

extension PostgreSQLAccountStore {
  /// Whom a person is recognized as.
  func recognizedTransfer(
    of account: Account, claiming claim: TransferClaim
  ) async throws(AccountStoreError) -> RecognizedTransfer? {
    let keys = keyed.current.value
    let (identifier, id) = (keys.fingerprint(of: claim.subject), keys.id(of: account))
    return try await database.snapshot { connection in
      let plans = try await connection.transferPlans()
      let rows = try await connection.query(
        """
        SELECT number, state, reason, account, identifier, has_signed_in, person, plan FROM siwa.transfer_user
        WHERE identifier = $1
        """, identifier, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in (row: try TransferRow(reading: row), plan: try row.value(7, as: Int64.self)) }
      let users = plans.flatMap { plan in
        rows.filter { $0.plan == plan.number }.map { PlannedUser(plan: plan, row: $0.row) }
      }
      return try users.recognized(account, with: claim.client, try await connection.origin(of: id), keys)
    }
  }

  /// The same without a claim.
  func recognizedTransfer(
    of account: Account, with client: ClientID
  ) async throws(AccountStoreError) -> RecognizedTransfer? {
    let keys = keyed.current.value
    let id = keys.id(of: account)
    return try await database.snapshot { connection in
      let origin = try await connection.origin(of: id)
      let users = try await connection.plannedUsers(as: [id, origin?.former].compactMap(\.self))
      return try users.with(client).recognized(account, with: client, origin, keys)
    }
  }
}

extension Connection {
  /// How an account came.
  func origin(of account: AccountID) async throws -> AccountOrigin? {
    try await first("SELECT from_team, former, client FROM siwa.transferred_account WHERE account = $1", account.bytes)
    {
      row throws(PostgreSQLError) in try AccountOrigin(reading: row)
    }
  }
}

extension AccountLinks {
  /// Adds a row.
  mutating func add(_ row: borrowing Row) throws(PostgreSQLError) {
    guard let account = AccountID(bytes: try row.value(0)), let former = AccountID(bytes: try row.value(1)),
      let client = ClientID(try row.value(2))
    else { throw .unexpectedValue("what an account has become") }
    add(account, from: former, with: client, at: try row.time(3))
  }
}

extension AccountOrigin {
  /// Reads a row's first columns.
  init(reading row: borrowing Row, from column: Int = 0) throws(PostgreSQLError) {
    guard let team = TeamID(try row.value(column)), let client = ClientID(try row.value(column + 2)) else {
      throw .unexpectedValue("the origin of an account")
    }
    self.init(
      fromTeam: team, with: client,
      former: try row.value(column + 1, as: [UInt8]?.self).flatMap { AccountID(bytes: $0) })
  }
}

extension PostgreSQLAccountStore {
  /// How often something is begun anew as accounts turn out to be joined with others.
  private static let attempts = 8

  /// Begins anew, with what locks come of that, where other accounts are concerned than had been locked (`usersChanged`).
  func lockingAnew<Value>(
    _ body: () async throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    for _ in 1..<Self.attempts {
      do throws(AccountStoreError) {
        return try await body()
      } catch {
        guard error == .usersChanged else { throw error }
      }
    }
    return try await body()
  }
}

extension AccountStoreError {
  /// What was read before is not so any more; nothing was changed.
  static let usersChanged = AccountStoreError(.unavailable, "users of a transfer are being changed: the same again")
}
