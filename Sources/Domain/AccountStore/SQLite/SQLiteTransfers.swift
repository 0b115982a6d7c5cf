import AccountEvents
import Cryptography
import SQLite

/// The rows of transfers of users: plans, their users, and the files that came in.
final class SQLiteTransfers {
  private let planInsertion: Statement
  private let planReading: Statement
  private let planUpdate: Statement
  private let planShredding: Statement
  private let userRemoval: Statement
  private let planRemoval: Statement
  private let leaseRemoval: Statement
  private let lastUser: Statement
  private let known: Statement
  private let knownUser: Statement
  private let insertion: Statement
  private let update: Statement
  private let reading: Statement
  private let page: Statement
  private let pageInState: Statement
  private let ownerOfIdentifier: Statement
  private let ownerOfAccount: Statement
  private let importing: Statement
  private let imported: Statement
  private let counting: Statement
  private let accounts: Statement
  private let receivedRemoval: Statement
  private let removal: Statement
  private let originRemoval: Statement
  private let existence: Statement
  private let database: Database

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    planInsertion = try database.prepare(
      """
      INSERT INTO transfer_plan (
        name, side, team, other_team, client, created_at, accepted_at, tried_at, last_user, master_key_id, data_key)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT DO NOTHING
      """)
    planReading = try database.prepare(
      """
      SELECT name, side, team, other_team, client, created_at, accepted_at, tried_at, number, last_user, master_key_id,
        data_key
      FROM transfer_plan WHERE ?1 IN ('', name) ORDER BY name
      """)
    // Two may note different things.
    planUpdate = try database.prepare(
      """
      UPDATE transfer_plan SET accepted_at = coalesce(?3, accepted_at), tried_at = coalesce(?4, tried_at)
      WHERE name = ?1 AND created_at = ?2 AND length(data_key) > 0
      """)
    planShredding = try database.prepare("UPDATE transfer_plan SET data_key = x'', master_key_id = '' WHERE name = ?")
    userRemoval = try database.prepare(
      """
      DELETE FROM transfer_user WHERE plan = ?1
        AND number IN (SELECT number FROM transfer_user WHERE plan = ?1 ORDER BY number LIMIT ?2)
      """)
    planRemoval = try database.prepare("DELETE FROM transfer_plan WHERE number = ? AND length(data_key) = 0")
    leaseRemoval = try database.prepare("DELETE FROM lease WHERE name = ?")
    lastUser = try database.prepare("UPDATE transfer_plan SET last_user = ?2 WHERE number = ?1")
    known = try database.prepare(
      """
      SELECT EXISTS (SELECT 1 FROM transfer_user WHERE plan = ?1 AND account = ?2)
        OR EXISTS (SELECT 1 FROM transfer_user WHERE plan = ?1 AND identifier = ?3)
      """)
    knownUser = try database.prepare(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person
      FROM transfer_user INDEXED BY transfer_user_account WHERE plan = ?1 AND account = ?2
      UNION ALL SELECT number, state, reason, account, identifier, has_signed_in, person
      FROM transfer_user INDEXED BY transfer_user_identifier WHERE plan = ?1 AND identifier = ?3
      """)
    insertion = try database.prepare(
      """
      INSERT INTO transfer_user (plan, number, state, reason, account, identifier, has_signed_in, person)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """)
    update = try database.prepare(
      """
      UPDATE transfer_user
      SET state = ?3, reason = ?4, account = ?5, identifier = ?6, has_signed_in = ?7, person = ?8
      WHERE plan = ?1 AND number = ?2
      """)
    reading = try database.prepare(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person FROM transfer_user
      WHERE plan = ? AND number = ?
      """)
    page = try database.prepare(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person FROM transfer_user
      WHERE plan = ? AND number > ? ORDER BY number LIMIT ?
      """)
    pageInState = try database.prepare(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person
      FROM transfer_user INDEXED BY transfer_user_state
      WHERE plan = ? AND number > ? AND state = ?4 ORDER BY number LIMIT ?3
      """)
    ownerOfIdentifier = try database.prepare("SELECT number FROM transfer_user WHERE plan = ? AND identifier = ?")
    // By itself SQLite reads all of the plan.
    ownerOfAccount = try database.prepare(
      """
      SELECT number FROM transfer_user INDEXED BY transfer_user_account
      WHERE plan = ? AND account = ? AND state <> 'conflict'
      """)
    importing = try database.prepare(
      "INSERT INTO transfer_import (plan, digest, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
    imported = try database.prepare("SELECT 1 FROM transfer_import WHERE plan = ? AND digest = ?")
    // The index alone is read, in its order.
    counting = try database.prepare(
      """
      SELECT state, count(*), sum(has_signed_in), count(*) FILTER (WHERE reason = 'consent-withdrawn'),
        count(*) FILTER (WHERE reason = 'useless-answer'), count(*) FILTER (WHERE reason = 'same-account'),
        count(*) FILTER (WHERE reason = 'other-account'), count(*) FILTER (WHERE reason = 'damaged')
      FROM transfer_user INDEXED BY transfer_user_state WHERE plan = ? GROUP BY state
      """)
    accounts = try database.prepare(
      """
      SELECT account.hash, team, subject, data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final,
        erasure.signed_in_at
      FROM account LEFT JOIN erasure_fence AS erasure ON erasure.hash = account.hash
      WHERE account.hash > ? AND team = ? ORDER BY account.hash LIMIT ?
      """)
    // Whoever is erased at the team that sends is not received either; but who has come since lives on there.
    receivedRemoval = try database.prepare(
      """
      DELETE FROM transfer_user WHERE has_signed_in = 0 AND identifier IN (
        SELECT sent.identifier FROM transfer_user AS sent JOIN transfer_plan ON transfer_plan.number = sent.plan
        WHERE sent.account = ? AND sent.identifier IS NOT NULL AND side = 'sending')
      """)
    removal = try database.prepare("DELETE FROM transfer_user WHERE account = ?")
    originRemoval = try database.prepare("DELETE FROM transferred_account WHERE account = ?")
    existence = try database.prepare(
      "SELECT EXISTS (SELECT 1 FROM transfer_user) OR EXISTS (SELECT 1 FROM transferred_account)")
  }

  // MARK: Plans

  /// Adds a plan; false where there is one of that name.
  func add(_ row: SealedTransferPlan) throws(SQLiteError) -> Bool {
    let plan = row.plan
    try planInsertion.run(
      plan.name, plan.side.rawValue, plan.team.text, plan.otherTeam.text, plan.client.text,
      plan.createdAt.milliseconds, plan.acceptedAt?.milliseconds, plan.triedAt?.milliseconds, row.masterKeyID,
      row.dataKey)
    return database.changes > 0
  }

  /// The plan of that name, also where it is being removed.
  func plan(named name: String) throws(SQLiteError) -> SealedTransferPlan? {
    try planReading.first(name) { row throws(SQLiteError) in try SealedTransferPlan(reading: row) }
  }

  /// All plans, also those that are being removed.
  func allPlans() throws(SQLiteError) -> [SealedTransferPlan] {
    var plans: [SealedTransferPlan] = []
    try planReading.forEach("") { row throws(SQLiteError) in plans.append(try SealedTransferPlan(reading: row)) }
    return plans
  }

  /// All plans but those that are being removed.
  func plans() throws(SQLiteError) -> [SealedTransferPlan] { try allPlans().filter { !$0.plan.isBeingRemoved } }

  /// Notes what has become known of a plan.
  func update(_ plan: TransferPlan) throws(SQLiteError) -> Bool {
    try planUpdate.run(
      plan.name, plan.createdAt.milliseconds, plan.acceptedAt?.milliseconds, plan.triedAt?.milliseconds)
    return database.changes > 0
  }

  /// Shreds the data key of a plan, and removes whoever works on it. Returns the plan's number; nil where there is none.
  func shred(_ name: String, lease: String) throws(SQLiteError) -> Int64? {
    guard let number = try plan(named: name)?.number else { return nil }
    try planShredding.run(name)
    try leaseRemoval.run(lease)
    return number
  }

  /// Removes users of a plan whose key is shredded, and with the last of them the plan; says whether some are left.
  func removeUsers(of plan: Int64) throws(SQLiteError) -> Bool {
    try userRemoval.run(plan, SealedTransferPlan.removal)
    if database.changes == SealedTransferPlan.removal { return true }
    try planRemoval.run(plan)
    return false
  }

  /// Notes that a file came in; false where it did before.
  func note(_ digest: SHA256Digest, into plan: Int64, at time: Timestamp) throws(SQLiteError) -> Bool {
    try importing.run(plan, digest.bytes, time.milliseconds)
    return database.changes > 0
  }

  /// Whether a file came in.
  func hasNoted(_ digest: SHA256Digest, into plan: Int64) throws(SQLiteError) -> Bool {
    try imported.first(plan, digest.bytes) { row throws(SQLiteError) in try row.value(0, as: Int64.self) } != nil
  }

  // MARK: Users

  /// Whether the plan has a user of that account or identifier.
  func knows(_ account: AccountID?, _ identifier: [UInt8]?, in plan: Int64) throws(SQLiteError) -> Bool {
    try known.first(plan, account?.bytes, identifier) { row throws(SQLiteError) in try row.value(0, as: Int64.self) }
      == 1
  }

  /// The user of that account or identifier.
  func user(_ account: AccountID?, _ identifier: [UInt8]?, in plan: Int64) throws(SQLiteError) -> TransferRow? {
    try knownUser.first(plan, account?.bytes, identifier) { row throws(SQLiteError) in try TransferRow(reading: row) }
  }

  /// The user of that number.
  func user(_ number: Int64, of plan: Int64) throws(SQLiteError) -> TransferRow? {
    try reading.first(plan, number) { row throws(SQLiteError) in try TransferRow(reading: row) }
  }

  /// Adds a user.
  func add(_ row: TransferRow, to plan: Int64) throws(SQLiteError) {
    try insertion.run(
      plan, row.number, row.state.rawValue, row.reason?.rawValue, row.account?.bytes, row.identifier,
      row.hasSignedIn ? Int64(1) : 0, row.person)
  }

  /// Notes who was added last.
  func note(lastUser number: Int64, of plan: Int64) throws(SQLiteError) { try lastUser.run(plan, number) }

  /// Writes a user anew.
  func write(_ row: TransferRow, of plan: Int64) throws(SQLiteError) {
    try update.run(
      plan, row.number, row.state.rawValue, row.reason?.rawValue, row.account?.bytes, row.identifier,
      row.hasSignedIn ? Int64(1) : 0, row.person)
  }

  /// A page of users.
  func users(
    of plan: Int64, in state: TransferUser.State?, after number: Int64, limit: Int
  ) throws(SQLiteError) -> [TransferRow] {
    var rows: [TransferRow] = []
    func add(_ row: borrowing Row) throws(SQLiteError) { rows.append(try TransferRow(reading: row)) }
    if let state {
      try pageInState.forEach(plan, number, Int64(limit), state.rawValue) { row throws(SQLiteError) in try add(row) }
    } else {
      try page.forEach(plan, number, Int64(limit)) { row throws(SQLiteError) in try add(row) }
    }
    return rows
  }

  /// What bears on answers.
  func facts(
    of results: [TransferResult], in plan: SealedTransferPlan, _ keys: StoreKeys
  ) throws(SQLiteError) -> TransferFacts {
    var facts = TransferFacts()
    for result in results {
      facts.rows[result.number] = try user(result.number, of: plan.number)
    }
    for code in results.identifiers(keys) {
      facts.identifiers[code] = try ownerOfIdentifier.first(plan.number, code) { row throws(SQLiteError) in
        try row.value(0)
      }
    }
    for account in results.accounts(of: plan.plan.team) {
      let id = keys.id(of: account)
      facts.accounts[id] = try ownerOfAccount.first(plan.number, id.bytes) { row throws(SQLiteError) in
        try row.value(0)
      }
    }
    return facts
  }

  /// How far a plan is.
  func census(of plan: Int64) throws(SQLiteError) -> TransferCensus {
    var census = TransferCensus()
    try counting.forEach(plan) { row throws(SQLiteError) in
      var reasons: [TransferRefusal: Int64] = [:]
      for (column, reason) in TransferRefusal.allCases.enumerated() { reasons[reason] = try row.value(3 + column) }
      census.add(try row.choice(0), try row.value(1), signedIn: try row.value(2), reasons)
    }
    return census
  }

  // MARK: Accounts

  /// A page of the accounts of a team, with what is known of their erasures.
  func accounts(
    of team: TeamID, after hash: [UInt8], limit: Int
  ) throws(SQLiteError) -> [(account: SealedAccount, facts: AccountFacts)] {
    var page: [(account: SealedAccount, facts: AccountFacts)] = []
    try accounts.forEach(hash, team.text, Int64(limit)) { row throws(SQLiteError) in
      page.append((try SealedAccount(reading: row), try AccountFacts(reading: row, from: 3)))
    }
    return page
  }

  /// Whether transfers keep anything of anybody.
  func keepAnything() throws(SQLiteError) -> Bool {
    try existence.first { row throws(SQLiteError) in try row.value(0, as: Int64.self) == 1 } ?? false
  }

  /// Removes what transfers keep of somebody who is erased; says whether there was anything.
  func remove(_ account: AccountID) throws(SQLiteError) -> Bool {
    var count = 0
    for statement in [receivedRemoval, removal, originRemoval] {
      try statement.run(account.bytes)
      count += database.changes
    }
    return count > 0
  }

  /// The accounts that transfers keep something of and that stand under one of these hashes.
  func accounts(under hashes: Set<AccountHash>, _ keys: StoreKeys) throws(SQLiteError) -> [AccountID] {
    var found: [AccountID] = []
    try database.prepare(
      "SELECT account FROM transfer_user WHERE account IS NOT NULL UNION SELECT account FROM transferred_account"
    ).forEach { row throws(SQLiteError) in
      guard let id = AccountID(bytes: try row.value(0)) else { throw .malformed("an account") }
      if hashes.contains(keys.hash(of: id)) { found.append(id) }
    }
    return found
  }
}

extension SealedTransferPlan {
  /// Reads a row.
  init(reading row: borrowing Row) throws(SQLiteError) {
    guard let team = TeamID(try row.value(2)), let otherTeam = TeamID(try row.value(3)),
      let client = ClientID(try row.value(4)),
      let plan = TransferPlan(
        try row.value(0), try row.choice(1), team: team, otherTeam: otherTeam, client: client,
        createdAt: try row.time(5), acceptedAt: try row.timeIfPresent(6), triedAt: try row.timeIfPresent(7))
    else { throw .malformed("a plan of a transfer") }
    self.init(
      number: try row.value(8), plan, lastUser: try row.value(9), masterKeyID: try row.value(10),
      dataKey: try row.value(11))
  }
}

extension TransferRow {
  /// Reads a row's first columns.
  init(reading row: borrowing Row) throws(SQLiteError) {
    self.init(
      number: try row.value(0), state: try row.choice(1),
      reason: try row.value(2, as: String?.self).flatMap(TransferRefusal.init),
      account: try row.value(3, as: [UInt8]?.self).flatMap { AccountID(bytes: $0) }, identifier: try row.value(4),
      hasSignedIn: try row.value(5, as: Int64.self) == 1, person: try row.value(6))
  }
}
