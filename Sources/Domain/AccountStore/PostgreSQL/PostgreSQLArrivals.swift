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

    /// Adds a row of one of the four executions.
    mutating func add(_ row: borrowing Row, of execution: Int) throws(PostgreSQLError) {
      switch execution {
      case 0:
        let plan = try SealedTransferPlan(reading: row)
        plans[plan.number] = plan
      case 1: users.append((try row.value(7), try TransferRow(reading: row)))
      case 2:
        guard let account = AccountID(bytes: try row.value(0)) else { throw .unexpectedValue("an account") }
        let origin = try AccountOrigin(reading: row, from: 1)
        facts.origins[account] = origin
        if let former = origin.former { facts.successors[former] = account }
      case 3:
        facts.accounts[try row.hash(10)] = RelayFacts(
          relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
      default: break
      }
    }

    /// The users who have an identifier.
    func users(of identifier: [UInt8]) -> [PlannedUser] {
      users.filter { $0.row.identifier == identifier }
        .compactMap { user in plans[user.plan].map { PlannedUser(plan: $0, row: user.row) } }
    }
  }

  /// Adds four executions: the plans of a side, or all, which nobody adds users to until the transaction ends, the users
  /// who have these identifiers, how these accounts came or what they have become, and what is known of them. Whoever holds
  /// a plan of one side already asks for those of the other alone: two of them would wait for each other.
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
    batch.append(
      """
      SELECT account, from_team, former, client FROM siwa.transferred_account WHERE account = ANY ($1)
      UNION SELECT account, from_team, former, client FROM siwa.transferred_account WHERE former = ANY ($1)
      """, ids)
    batch.append(
      """
      SELECT relay.status, relay.since, relay.is_private, relay.address,
        data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at, asked.hash
      FROM unnest($1) AS asked (hash) LEFT JOIN siwa.relay USING (hash) LEFT JOIN siwa.account USING (hash)
        LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
      """, PostgreSQLArray(accounts.map { keys.hash(of: $0).bytes }))
  }

  /// Adds what arrivals have come to.
  static func write(
    _ judged: JudgedArrivals, _ keys: StoreKeys, in batch: inout Batch
  ) throws(AccountStoreError) {
    try PostgreSQLWrites.write(Array(judged.accounts.values), keys, in: &batch)
    for (account, joined) in judged.origins {
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

  /// The accounts that others have become, by the hashes of those.
  func successors(of settlements: [Settlement], _ keys: StoreKeys) async throws -> [AccountHash: Successor] {
    let told = settlements.filter(\.tellsSuccessor).map(\.event)
    if told.isEmpty { return [:] }
    let formers = Dictionary(told.map { (keys.id(of: $0.account).bytes, $0.hash) }) { first, _ in first }
    let found = try await query(
      "SELECT former, account, client FROM siwa.transferred_account WHERE former = ANY ($1)",
      PostgreSQLArray(Array(formers.keys)), limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in
      (
        former: try row.value(0, as: [UInt8].self), id: AccountID(bytes: try row.value(1)),
        client: ClientID(try row.value(2))
      )
    }
    var rows: [SealedSuccessor] = []
    for (former, id, client) in found {
      guard let former = formers[former], let id, let client else { continue }
      // While the hashing key is being replaced, it bears one hash or the other.
      let hashes = [keys.hash(of: id).bytes] + (keys.state.isMoving ? [keys.hashing.move(of: id).from.bytes] : [])
      let row = try await query(
        "SELECT hash, team, subject, data_key, master_key_id FROM siwa.account WHERE hash = ANY ($1)",
        PostgreSQLArray(hashes), limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        SealedAccount(
          hash: try row.hash(0), team: try row.value(1), subject: try row.value(2),
          key: AccountFacts.WrappedKey(bytes: try row.value(3), masterKeyID: try row.value(4)))
      }.first
      if let row { rows.append(SealedSuccessor(former: former, client: client, row: row)) }
    }
    return try rows.opened(keys)
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

extension AccountStoreError {
  /// What was read before is not so any more; nothing was changed.
  static let usersChanged = AccountStoreError(.unavailable, "users of a transfer are being changed: the same again")
}
