import AccountEvents
import EventLoop
import PostgreSQL

/// How the rows of transfers of users are read and written.
enum PostgreSQLTransfers {
  /// The columns of a plan.
  private static let plan: StaticString = """
    SELECT name, side, team, other_team, client, created_at, accepted_at, tried_at, number, last_user, master_key_id,
      data_key
    FROM siwa.transfer_plan WHERE name = $1
    """

  /// Whoever changes plans, or what is in one, runs this before it has looked at any, and behind the lease of a plan.
  ///
  /// Whoever erases somebody holds the rows of all plans together with others who do, and there may always be one: who wants
  /// such a row alone never gets it. The table has a queue, in which nobody is overtaken; and who has it waits for no row of
  /// a plan or a user.
  static let lockOfPlans: StaticString = "LOCK siwa.transfer_plan IN EXCLUSIVE MODE"

  /// Adds two executions, the second of which reads a plan. Nobody else adds users or writes answers, and nobody erases, until
  /// the transaction ends.
  static func lock(_ plan: TransferPlan, in batch: inout Batch) {
    batch.append(lockOfPlans)
    batch.append(Self.plan, plan.name)
  }

  /// Adds three executions that read what bears on answers: users, whose identifiers those are, and whose accounts. With
  /// `plan + 0` no index is looked at for the plan, of which the server would read all.
  static func readFacts(
    of results: [TransferResult], in plan: TransferPlan, _ keys: StoreKeys, in batch: inout Batch
  ) {
    batch.append(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person FROM siwa.transfer_user
      WHERE plan = (SELECT number FROM siwa.transfer_plan WHERE name = $1) AND number = ANY ($2)
      ORDER BY number FOR UPDATE
      """, plan.name, PostgreSQLArray(results.map(\.number)))
    batch.append(
      """
      SELECT number, identifier FROM siwa.transfer_user
      WHERE plan + 0 = (SELECT number FROM siwa.transfer_plan WHERE name = $1) AND identifier = ANY ($2)
      """, plan.name, PostgreSQLArray(results.identifiers(keys)))
    batch.append(
      """
      SELECT number, account FROM siwa.transfer_user
      WHERE plan + 0 = (SELECT number FROM siwa.transfer_plan WHERE name = $1) AND account = ANY ($2)
        AND state <> 'conflict'
      """, plan.name, PostgreSQLArray(results.accounts(of: plan.team).map { keys.id(of: $0).bytes }))
  }

  /// Adds new users.
  static func add(_ rows: [TransferRow], to plan: SealedTransferPlan, in batch: inout Batch) {
    guard let last = rows.last else { return }
    batch.append(
      """
      INSERT INTO siwa.transfer_user (plan, number, state, reason, account, identifier, has_signed_in, person)
      SELECT $8, * FROM unnest($1, $2, $3, $4, $5, $6, $7)
      """, PostgreSQLArray(rows.map(\.number)), PostgreSQLArray(rows.map(\.state.rawValue)),
      PostgreSQLArray(rows.map(\.reason?.rawValue)), PostgreSQLArray(rows.map(\.account?.bytes)),
      PostgreSQLArray(rows.map(\.identifier)), PostgreSQLArray(rows.map(\.hasSignedIn)),
      PostgreSQLArray(rows.map(\.person)), plan.number)
    batch.append("UPDATE siwa.transfer_plan SET last_user = $2 WHERE number = $1", plan.number, last.number)
  }

  /// Adds an execution that writes users anew.
  static func write(_ rows: [TransferRow], of plan: Int64, in batch: inout Batch) {
    if rows.isEmpty { return }
    batch.append(
      """
      UPDATE siwa.transfer_user AS known SET state = said.state, reason = said.reason, account = said.account,
        identifier = said.identifier, has_signed_in = said.has_signed_in, person = said.person
      FROM unnest($1, $2, $3, $4, $5, $6, $7)
        AS said (number, state, reason, account, identifier, has_signed_in, person)
      WHERE known.plan = $8 AND known.number = said.number
      """, PostgreSQLArray(rows.map(\.number)), PostgreSQLArray(rows.map(\.state.rawValue)),
      PostgreSQLArray(rows.map(\.reason?.rawValue)), PostgreSQLArray(rows.map(\.account?.bytes)),
      PostgreSQLArray(rows.map(\.identifier)), PostgreSQLArray(rows.map(\.hasSignedIn)),
      PostgreSQLArray(rows.map(\.person)), plan)
  }

  /// Adds what removes all that transfers keep of those who are erased. Whoever adds users or writes answers has done so
  /// before these executions, or finds the fence.
  static func remove(_ accounts: [AccountID], in batch: inout Batch) {
    if accounts.isEmpty { return }
    let all = PostgreSQLArray(accounts.map(\.bytes))
    batch.append("SELECT FROM siwa.transfer_plan ORDER BY number FOR SHARE")
    // Whoever is erased at the team that sends is not received either; but who has come since lives on there.
    batch.append(
      """
      DELETE FROM siwa.transfer_user WHERE NOT has_signed_in AND identifier IN (
        SELECT sent.identifier FROM siwa.transfer_user AS sent
          JOIN siwa.transfer_plan ON transfer_plan.number = sent.plan
        WHERE sent.account = ANY ($1) AND sent.identifier IS NOT NULL AND transfer_plan.side = 'sending')
      """, all)
    batch.append("DELETE FROM siwa.transfer_user WHERE account = ANY ($1)", all)
    batch.append("DELETE FROM siwa.transferred_account WHERE account = ANY ($1)", all)
  }
}

extension Connection {
  /// All plans but those that are being removed, by name.
  func transferPlans() async throws -> [SealedTransferPlan] {
    try await allTransferPlans().filter { !$0.plan.isBeingRemoved }
  }

  /// All plans, by name.
  func allTransferPlans() async throws -> [SealedTransferPlan] {
    try await query(
      """
      SELECT name, side, team, other_team, client, created_at, accepted_at, tried_at, number, last_user, master_key_id,
        data_key
      FROM siwa.transfer_plan ORDER BY name COLLATE "C"
      """, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in try SealedTransferPlan(reading: row) }
  }

  /// The plan as it is kept; throws where there is none, or another one of that name.
  func row(of plan: TransferPlan) async throws -> SealedTransferPlan {
    let found = try await countedRow(of: plan)
    guard !found.plan.isBeingRemoved else { throw AccountStoreError.beingRemoved(plan) }
    return found
  }

  /// The same also where it is being removed.
  func countedRow(of plan: TransferPlan) async throws -> SealedTransferPlan {
    let found = try await allTransferPlans().first { $0.plan.isSame(as: plan) }
    guard let found else { throw AccountStoreError.noPlan(plan) }
    return found
  }

  /// A page of users.
  func transferUsers(
    of plan: Int64, in state: TransferUser.State?, after number: Int64, limit: Int
  ) async throws -> [TransferRow] {
    guard let state else {
      return try await query(
        """
        SELECT number, state, reason, account, identifier, has_signed_in, person FROM siwa.transfer_user
        WHERE plan = $1 AND number > $2 ORDER BY number LIMIT $3
        """, plan, number, Int64(limit), limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in try TransferRow(reading: row) }
    }
    return try await query(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person FROM siwa.transfer_user
      WHERE plan = $1 AND number > $2 AND state = $4 ORDER BY number LIMIT $3
      """, plan, number, Int64(limit), state.rawValue, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in try TransferRow(reading: row) }
  }

  /// The users of a plan who have one of these accounts, or one of the identifiers.
  func users(of plan: Int64, _ accounts: [[UInt8]], _ identifiers: [[UInt8]]) async throws -> [TransferRow] {
    try await query(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person FROM siwa.transfer_user
      WHERE plan + 0 = $1 AND account = ANY ($2)
      UNION ALL SELECT number, state, reason, account, identifier, has_signed_in, person FROM siwa.transfer_user
      WHERE plan + 0 = $1 AND identifier = ANY ($3)
      """, plan, PostgreSQLArray(accounts), PostgreSQLArray(identifiers), limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in try TransferRow(reading: row) }
  }

  /// The accounts that transfers keep something of and that stand under one of these hashes.
  func transferredAccounts(under hashes: Set<AccountHash>, _ keys: StoreKeys) async throws -> [AccountID] {
    var (found, last) = ([AccountID](), [UInt8]())
    while true {
      let page = try await query(
        """
        SELECT account FROM siwa.transfer_user WHERE account > $1
        UNION SELECT account FROM siwa.transferred_account WHERE account > $1 ORDER BY 1 LIMIT 10000
        """, last, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in AccountID(bytes: try row.value(0)) }.compactMap(\.self)
      guard let end = page.last else { return found }
      found += page.filter { hashes.contains(keys.hash(of: $0)) }
      last = end.bytes
    }
  }
}

extension SealedTransferPlan {
  /// Reads a row.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    guard let team = TeamID(try row.value(2)), let otherTeam = TeamID(try row.value(3)),
      let client = ClientID(try row.value(4)),
      let plan = TransferPlan(
        try row.value(0), try row.choice(1), team: team, otherTeam: otherTeam, client: client,
        createdAt: try row.time(5), acceptedAt: try row.timeIfPresent(6), triedAt: try row.timeIfPresent(7))
    else { throw .unexpectedValue("a plan of a transfer") }
    self.init(
      number: try row.value(8), plan, lastUser: try row.value(9), masterKeyID: try row.value(10),
      dataKey: try row.value(11))
  }
}

extension TransferRow {
  /// Reads a row's first columns.
  init(reading row: borrowing Row) throws(PostgreSQLError) {
    self.init(
      number: try row.value(0), state: try row.choice(1),
      reason: try row.value(2, as: String?.self).flatMap(TransferRefusal.init),
      account: try row.value(3, as: [UInt8]?.self).flatMap { AccountID(bytes: $0) }, identifier: try row.value(4),
      hasSignedIn: try row.value(5), person: try row.value(6))
  }
}
