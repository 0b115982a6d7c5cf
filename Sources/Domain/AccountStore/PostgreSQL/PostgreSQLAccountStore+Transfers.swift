import AccountEvents
import Cryptography
import PostgreSQL

extension PostgreSQLAccountStore {
  /// Adds a plan.
  func add(_ plan: TransferPlan) async throws(AccountStoreError) -> TransferPlan? {
    let row = try keyed.current.value.seal(plan)
    return try await database.write { connection in
      // Whoever erases and has found no plan to lock comes to its end first.
      try await connection.execute(PostgreSQLTransfers.lockOfPlans)
      let added = try await connection.execute(
        """
        INSERT INTO siwa.transfer_plan (
          name, side, team, other_team, client, created_at, accepted_at, tried_at, last_user, master_key_id, data_key)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10) ON CONFLICT DO NOTHING
        """, plan.name, plan.side.rawValue, plan.team.text, plan.otherTeam.text, plan.client.text,
        plan.createdAt.milliseconds, plan.acceptedAt?.milliseconds, plan.triedAt?.milliseconds, row.masterKeyID,
        row.dataKey)
      if added > 0 { return nil }
      return try await connection.allTransferPlans().first { $0.plan.name == plan.name }?.plan
    }
  }

  /// All plans.
  func transferPlans() async throws(AccountStoreError) -> [TransferPlan] {
    try await database.read { connection in try await connection.allTransferPlans().map(\.plan) }
  }

  /// Notes what has become known of a plan.
  func update(_ plan: TransferPlan) async throws(AccountStoreError) -> Bool {
    // Two may note different things.
    try await database.write { connection in
      try await connection.execute(PostgreSQLTransfers.lockOfPlans)
      return try await connection.execute(
        """
        UPDATE siwa.transfer_plan SET accepted_at = coalesce($3, accepted_at), tried_at = coalesce($4, tried_at)
        WHERE name = $1 AND created_at = $2 AND length(data_key) > 0
        """, plan.name, plan.createdAt.milliseconds, plan.acceptedAt?.milliseconds, plan.triedAt?.milliseconds) > 0
    }
  }

  /// Removes a plan, its data key and its users.
  func removePlan(_ name: String) async throws(AccountStoreError) -> Bool {
    let number = try await database.write { connection in
      try await connection.execute("DELETE FROM siwa.lease WHERE name = $1", TransferPlan.lease(of: name))
      try await connection.execute(PostgreSQLTransfers.lockOfPlans)
      return try await connection.first(
        "UPDATE siwa.transfer_plan SET data_key = '', master_key_id = '' WHERE name = $1 RETURNING number", name
      ) { row throws(PostgreSQLError) in try row.value(0, as: Int64.self) }
    }
    guard let number else { return false }
    var isLeft = true
    while isLeft {
      isLeft = try await database.write { connection in
        try await connection.execute(PostgreSQLTransfers.lockOfPlans)
        let count = try await connection.execute(
          """
          DELETE FROM siwa.transfer_user WHERE plan = $1
            AND number IN (SELECT number FROM siwa.transfer_user WHERE plan = $1 ORDER BY number LIMIT $2)
          """, number, SealedTransferPlan.removal)
        if count == SealedTransferPlan.removal { return true }
        try await connection.execute(
          "DELETE FROM siwa.transfer_plan WHERE number = $1 AND length(data_key) = 0", number)
        return false
      }
    }
    return true
  }

  /// Adds users that are new, unless the plan has some that the caller does not know of.
  func add(
    _ users: [NewTransferUser], to plan: TransferPlan, knowing number: Int64?
  ) async throws(AccountStoreError) -> (new: Int, last: Int64)? {
    let accounts = try users.map { user throws(AccountStoreError) in try user.account(of: plan) }
    return try await keyed.write(to: accounts.compactMap(\.self)) { connection, keys in
      var locking = Batch.locked
      PostgreSQLTransfers.lock(plan, in: &locking)
      let known = try await connection.lockedPlan(plan, locking, keys)
      if let number {
        let isThere = try await connection.first(
          "SELECT EXISTS (SELECT FROM siwa.transfer_user WHERE plan = $1 AND number > $2)", known.row.number, number
        ) { row throws(PostgreSQLError) in try row.value(0, as: Bool.self) }
        if isThere == true { return nil }
      }
      // The plan is locked: who is erased from now on is removed from it, and who was before has a fence.
      var erased: Set<Int64> = []
      if plan.side == .sending {
        var asking = Batch.byKey
        asking.append(
          """
          SELECT asked.position FROM unnest($1) WITH ORDINALITY AS asked (hash, position)
            JOIN siwa.erasure_fence AS erasure ON erasure.hash = asked.hash
            LEFT JOIN siwa.account ON account.hash = asked.hash
          WHERE NOT coalesce(account.signed_in_at > erasure.at, false)
          """, PostgreSQLArray(accounts.map { $0.map { keys.hash(of: $0).bytes } }))
        try await connection.run(asking) { execution, row throws(PostgreSQLError) in
          if execution == 1 { erased.insert(try row.value(0)) }
        }
      }
      let people = users.indices.filter { !erased.contains(Int64($0 + 1)) }.map { TransferPerson(users[$0]) }
      let new = try await connection.add(people, to: known)
      return (new, known.row.lastUser + Int64(new))
    }
  }

  /// The keys of users in a plan.
  func knownKeys(of users: [NewTransferUser], in plan: TransferPlan) async throws(AccountStoreError) -> [String?] {
    let keys = keyed.current.value
    let accounts = try users.map { user throws(AccountStoreError) -> [UInt8]? in
      try user.account(of: plan).map { keys.id(of: $0).bytes }
    }
    let identifiers = users.map { user in user.transferSubject.map { keys.fingerprint(of: $0) } }
    return try await database.snapshot { connection in
      let plan = try await connection.row(of: plan).open(with: keys)
      let rows = try await connection.users(
        of: plan.row.number, accounts.compactMap(\.self), identifiers.compactMap(\.self))
      var known: [[UInt8]: String] = [:]
      for row in rows {
        guard let code = plan.plan.side == .sending ? row.account?.bytes : row.identifier else { continue }
        known[code] = try plan.personIfWhole(row)?.key
      }
      return zip(accounts, identifiers).map { account, identifier in (account ?? identifier).flatMap { known[$0] } }
    }
  }

  /// Adds a page of the plan's team's accounts.
  func addAccounts(
    to plan: TransferPlan, after place: AccountID?, limit: Int
  ) async throws(AccountStoreError) -> (new: Int, place: AccountID?) {
    // Whether a rotation is under way decides.
    try await keyed.refresh()
    return try await keyed.write(to: []) { connection, keys in
      // In the order of their hashes, which has to be one.
      guard !keys.state.isMoving else { throw AccountStoreError.movingAccounts }
      var locking = Batch.locked
      PostgreSQLTransfers.lock(plan, in: &locking)
      let known = try await connection.lockedPlan(plan, locking, keys)
      let rows = try await connection.query(
        """
        SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
          account.hash, team, subject
        FROM siwa.account LEFT JOIN siwa.erasure_fence AS erasure ON erasure.hash = account.hash
        WHERE account.hash > $1 AND team = $2 ORDER BY account.hash LIMIT $3
        """, place.map { keys.hash(of: $0).bytes } ?? [], plan.team.text, Int64(limit),
        limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        let key = AccountFacts.WrappedKey(bytes: try row.value(0), masterKeyID: try row.value(1))
        return (
          account: SealedAccount(hash: try row.hash(6), team: try row.value(7), subject: try row.value(8), key: key),
          facts: try AccountFacts(reading: row, from: 0)
        )
      }
      let page = try AccountPage(opening: rows, limit: limit, keys)
      return (try await connection.add(page.people, to: known), page.end)
    }
  }

  /// Notes that a file came in.
  func noteImport(
    _ digest: SHA256Digest, into plan: TransferPlan, at time: Timestamp
  ) async throws(AccountStoreError) -> Bool {
    try await database.write { connection in
      try await connection.execute(
        "INSERT INTO siwa.transfer_import (plan, digest, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        try await connection.row(of: plan).number, digest.bytes, time.milliseconds) > 0
    }
  }

  /// Whether a file came in.
  func hasImported(
    _ digest: SHA256Digest, into plan: TransferPlan
  ) async throws(AccountStoreError) -> Bool {
    try await database.snapshot { connection in
      try await connection.first(
        "SELECT true FROM siwa.transfer_import WHERE plan = $1 AND digest = $2",
        try await connection.row(of: plan).number, digest.bytes
      ) { row throws(PostgreSQLError) in try row.value(0, as: Bool.self) } ?? false
    }
  }

  /// A page of users.
  func transferUsers(
    of plan: TransferPlan, in state: TransferUser.State?, after number: Int64, limit: Int
  ) async throws(AccountStoreError) -> [TransferUser] {
    let keys = keyed.current.value
    return try await database.snapshot { connection in
      let plan = try await connection.row(of: plan).open(with: keys)
      return try plan.users(
        try await connection.transferUsers(of: plan.row.number, in: state, after: number, limit: limit))
    }
  }

  /// Writes what Apple said.
  func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> [TransferUser.State]? {
    try results.expect(plan.side)
    return try await lockingAnew { () throws(AccountStoreError) in
      // Accounts are locked in one order, so it has to be known before which of those that Apple named concern the store.
      let (joined, formers) = try await accountsConcerned(by: results, of: plan)
      return try await record(results, of: plan, under: lease, at: time, locking: joined, formers)
    }
  }

  private func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp,
    locking joined: [Account], _ formers: [AccountID]
  ) async throws(AccountStoreError) -> [TransferUser.State]? {
    try await keyed.write(to: joined, and: formers) { connection, keys in
      let renewed = lease.renewed(at: time)
      var reading = Batch.locked
      let concerned = joined.map { keys.id(of: $0) } + formers
      if !concerned.isEmpty { reading.lock(concerned.map { keys.hash(of: $0) }, keys) }
      let first = reading.count
      reading.append(
        "UPDATE siwa.lease SET until = $3 WHERE name = $1 AND holder = $2", renewed.name, renewed.holder, renewed.until)
      PostgreSQLTransfers.lock(plan, in: &reading)
      PostgreSQLTransfers.readFacts(of: results, in: plan, keys, in: &reading)
      var known: SealedTransferPlan?
      var facts = TransferFacts()
      let counts = try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        switch execution - first {
        case 2: known = try SealedTransferPlan(reading: row)
        case 3:
          let user = try TransferRow(reading: row)
          facts.rows[user.number] = user
        case 4: facts.identifiers[try row.value(1)] = try row.value(0)
        case 5:
          if let account = AccountID(bytes: try row.value(1)) { facts.accounts[account] = try row.value(0) }
        default: break
        }
      }
      // Nothing is written where the lease is somebody else's.
      guard counts[first] == 1 else { return nil }
      guard let known, known.plan.isSame(as: plan) else { throw AccountStoreError.noPlan(plan) }
      guard !known.plan.isBeingRemoved else { throw AccountStoreError.beingRemoved(plan) }
      if plan.side == .receiving {
        let identifiers = results.compactMap { facts.rows[$0.number]?.identifier }
        let named = results.accounts(of: plan.team).map { keys.id(of: $0) }
        facts.arrivals = try await connection.facts(of: identifiers, with: plan, named + formers, keys)
        let locked = Set(concerned.map { keys.hash(of: $0) })
        guard facts.arrivals.concerned(keys).isSubset(of: locked) else { throw AccountStoreError.usersChanged }
      }
      let judged = try JudgedTransfers(results, facts, of: known.open(with: keys), at: time)
      var writing = Batch()
      try PostgreSQLArrivals.write(judged.arrivals, keys, in: &writing)
      PostgreSQLTransfers.write(Array(judged.changed.values), of: known.number, in: &writing)
      if writing.count > 0 { _ = try await connection.run(writing) }
      return judged.states
    }
  }

  /// Notes what was decided about a conflict.
  func note(
    _ decision: TransferDecision, of number: Int64, in plan: TransferPlan
  ) async throws(AccountStoreError) -> TransferUser? {
    try await keyed.write(to: []) { connection, keys in
      var locking = Batch.locked
      PostgreSQLTransfers.lock(plan, in: &locking)
      let known = try await connection.lockedPlan(plan, locking, keys)
      let row = try await connection.first(
        """
        SELECT number, state, reason, account, identifier, has_signed_in, person FROM siwa.transfer_user
        WHERE plan = $1 AND number = $2
        """, known.row.number, number
      ) { row throws(PostgreSQLError) in try TransferRow(reading: row) }
      guard let row, let decided = try known.row(row, with: decision) else { return nil }
      var writing = Batch()
      PostgreSQLTransfers.write([decided], of: known.row.number, in: &writing)
      _ = try await connection.run(writing)
      return try known.users([decided]).first
    }
  }

  /// The accounts that Apple named of which there is something in the store, or in whose place there was one before; and
  /// those.
  private func accountsConcerned(
    by results: [TransferResult], of plan: TransferPlan
  ) async throws(AccountStoreError) -> (joined: [Account], formers: [AccountID]) {
    guard plan.side == .receiving, !results.isEmpty else { return ([], []) }
    return try await keyed.read(of: []) { connection, keys in
      let rows = try await connection.query(
        """
        SELECT number, identifier FROM siwa.transfer_user
        WHERE plan = (SELECT number FROM siwa.transfer_plan WHERE name = $1) AND number = ANY ($2)
          AND identifier IS NOT NULL
        """, plan.name, PostgreSQLArray(results.map(\.number)), limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        (number: try row.value(0, as: Int64.self), code: try row.value(1, as: [UInt8].self))
      }
      let formers = try await connection.formerAccounts(of: rows.map(\.code), to: plan.team)
      let accounts = results.accounts(of: plan.team)
      // Most are in no store yet where the team of before has another one. Of whom there is a fence alone, that is found
      // only once it has moved.
      if !formers.isEmpty || keys.state.isMoving { return (accounts, formers) }
      let found = try await connection.query(
        "SELECT hash FROM siwa.account WHERE hash = ANY ($1)",
        PostgreSQLArray(accounts.flatMap { keys.hashing.hashes(of: $0).suffix(2).map(\.bytes) }),
        limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in try row.value(0, as: [UInt8].self) }
      let known = Set(found)
      return (accounts.filter { keys.hashing.hashes(of: $0).suffix(2).contains { known.contains($0.bytes) } }, [])
    }
  }

  /// How far a plan is.
  func census(of plan: TransferPlan) async throws(AccountStoreError) -> TransferCensus {
    try await database.snapshot { connection in
      let number = try await connection.countedRow(of: plan).number
      var census = TransferCensus()
      try await connection.forEach(
        """
        SELECT state, reason, count(*), count(*) FILTER (WHERE has_signed_in) FROM siwa.transfer_user
        WHERE plan = $1 GROUP BY state, reason
        """, number, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        let count: Int64 = try row.value(2)
        let reason = try row.value(1, as: String?.self).flatMap(TransferRefusal.init)
        census.add(try row.choice(0), count, signedIn: try row.value(3), reason.map { [$0: count] } ?? [:])
      }
      return census
    }
  }
}

extension Connection {
  /// What bears on the arrival of those who have these identifiers, whose accounts are locked.
  fileprivate func facts(
    of identifiers: [[UInt8]], with plan: TransferPlan, _ accounts: [AccountID], _ keys: StoreKeys
  ) async throws -> ArrivalFacts {
    var batch = Batch.byKey
    PostgreSQLArrivals.read(identifiers, in: .sending, accounts, keys, in: &batch)
    var reading = PostgreSQLArrivals.Reading()
    try await run(batch) { execution, row throws(PostgreSQLError) in try reading.add(row, of: execution - 1) }
    // Mostly the only plan is the one that they come by.
    guard reading.plans.values.contains(where: { $0.plan.isSending(to: plan.team) }) else { return reading.facts }
    for identifier in identifiers {
      reading.facts.sent[identifier] = try reading.users(of: identifier).sent(
        to: plan.team, with: plan.client, keys)
    }
    return reading.facts
  }

  /// Runs a batch whose last execution reads a plan.
  fileprivate func lockedPlan(
    _ plan: TransferPlan, _ batch: Batch, _ keys: StoreKeys
  ) async throws -> OpenTransferPlan {
    var known: SealedTransferPlan?
    try await run(locked: batch, keys) { execution, row throws(PostgreSQLError) in
      if execution == batch.count - 1 { known = try SealedTransferPlan(reading: row) }
    }
    guard let known, known.plan.isSame(as: plan) else { throw AccountStoreError.noPlan(plan) }
    guard !known.plan.isBeingRemoved else { throw AccountStoreError.beingRemoved(plan) }
    return try known.open(with: keys)
  }

  /// Adds people to a plan that is locked, and returns how many of them are new.
  fileprivate func add(_ people: [TransferPerson], to plan: OpenTransferPlan) async throws -> Int {
    if people.isEmpty { return 0 }
    let asked = people.map { person in
      (
        account: person.subject.map { plan.keys.id(of: Account(team: plan.plan.team, subject: $0)) },
        identifier: person.transferSubject.map { plan.keys.fingerprint(of: $0) }
      )
    }
    var asking = Batch.byKey
    asking.append(
      """
      SELECT account, identifier FROM siwa.transfer_user WHERE plan + 0 = $1 AND account = ANY ($2)
      UNION ALL SELECT account, identifier FROM siwa.transfer_user WHERE plan + 0 = $1 AND identifier = ANY ($3)
      """, plan.row.number, PostgreSQLArray(asked.compactMap { $0.account?.bytes }),
      PostgreSQLArray(asked.compactMap(\.identifier)))
    var (accounts, identifiers): (Set<AccountID>, Set<[UInt8]>) = ([], [])
    try await run(asking) { execution, row throws(PostgreSQLError) in
      guard execution == 1 else { return }
      if let account = try row.value(0, as: [UInt8]?.self).flatMap({ AccountID(bytes: $0) }) {
        accounts.insert(account)
      }
      if let identifier = try row.value(1, as: [UInt8]?.self) { identifiers.insert(identifier) }
    }
    var rows: [TransferRow] = []
    for (person, (account, identifier)) in zip(people, asked) {
      if let account, !accounts.insert(account).inserted { continue }
      if let identifier, !identifiers.insert(identifier).inserted { continue }
      rows.append(try plan.row(of: person, plan.row.lastUser + Int64(rows.count) + 1))
    }
    if rows.isEmpty { return 0 }
    var writing = Batch()
    PostgreSQLTransfers.add(rows, to: plan.row, in: &writing)
    _ = try await run(writing)
    return rows.count
  }
}
