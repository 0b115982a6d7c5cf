import AccountEvents
import Cryptography
import PostgreSQL

extension PostgreSQLAccountStore {
  /// Adds a sign-in with its tokens; of an exchange, once.
  func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken], of request: SHA256Digest?,
    claiming claim: TransferClaim?
  ) async throws(AccountStoreError) -> RecordedSignIn {
    try await lockingAnew { () throws(AccountStoreError) in
      // Accounts are locked in one order, so it has to be known before which there are.
      try await recordSignIn(
        account, at: time, tokens: tokens, of: request, claiming: claim,
        locking: try await formerAccounts(of: account, claim))
    }
  }

  private func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken], of request: SHA256Digest?,
    claiming claim: TransferClaim?, locking formers: [AccountID]
  ) async throws(AccountStoreError) -> RecordedSignIn {
    return try await keyed.write(to: CollectionOfOne(account), and: formers) { connection, keys in
      let hash = keys.hash(of: account)
      var reading = Batch.locked
      reading.lock([hash] + formers.map { keys.hash(of: $0) }, keys)
      let first = reading.count
      reading.appendStanding(of: hash)
      if let request {
        reading.append(
          "SELECT outcome, begun_at, signed_in_at FROM siwa.code_exchange WHERE request = $1 FOR UPDATE",
          request.bytes)
        reading.appendLastDeletion(of: keys.id(of: account))
        // Those of authorizations that were given anew, too.
        reading.append("SELECT at FROM siwa.own_revocation WHERE hash = $1", hash.bytes)
      }
      var (facts, ended) = (AccountFacts(), EndedAuthorizations())
      var found: (outcome: CodeExchange.Outcome?, begunAt: Timestamp, at: Timestamp)?
      var deletion: Deletion?
      var revocations: [Timestamp] = []
      try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        switch execution {
        case first: facts = try AccountFacts(reading: row, from: 0)
        case first + 1: ended.endedAt[try row.value(0)] = try row.time(1)
        case first + 2:
          found = (CodeExchange.Outcome(rawValue: try row.value(0)), try row.time(1), try row.time(2))
        case first + 3: deletion = try Deletion(reading: row)
        case first + 4: revocations.append(try row.time(0))
        default: break
        }
      }
      if let found, let outcome = found.outcome,
        let recorded = RecordedSignIn(outcome, at: found.at, of: tokens)
      {
        return recorded
      }
      var time = time
      if let found { time = RecordedSignIn.time(time, begunAt: found.begunAt, beside: deletion, revocations) }
      var changed = ChangedAccount(hash, facts)
      let over = try changed.signIn(account, at: time, tokens, ended, keys)
      var recorded = RecordedSignIn(at: time, isNew: facts.signedInAt == nil, over: over)
      var writing = Batch()
      if let claim, !facts.isErased(at: time) {
        let claimed = try await connection.facts(of: claim, account, formers, keys)
        let judged = try JudgedClaim(claim, of: account, changed, claimed, at: time, keys)
        recorded.conflict = judged.conflict
        try PostgreSQLArrivals.write(judged.arrivals, keys, in: &writing)
        if let user = judged.user { PostgreSQLTransfers.write([user.row], of: user.plan, in: &writing) }
      } else {
        try PostgreSQLWrites.write([changed], keys, in: &writing)
      }
      if let request { writing.end(request, recorded.outcome, at: recorded.at) }
      if writing.count > 0 { _ = try await connection.run(writing) }
      return recorded
    }
  }

  /// The accounts of before of somebody with a claim.
  private func formerAccounts(
    of account: Account, _ claim: TransferClaim?
  ) async throws(AccountStoreError) -> [AccountID] {
    guard let claim else { return [] }
    let identifier = keyed.current.value.fingerprint(of: claim.subject)
    return try await database.read { connection in
      try await connection.formerAccounts(of: [identifier], to: account.team)
    }
  }

  /// Notes an exchange.
  func begin(_ exchange: CodeExchange) async throws(AccountStoreError) -> CodeExchange.Standing {
    var batch = Batch()
    batch.append(
      "DELETE FROM siwa.code_exchange WHERE begun_at < $1 AND outcome <> 'begun'",
      (exchange.begunAt - CodeExchange.memory).milliseconds)
    batch.append(
      """
      INSERT INTO siwa.code_exchange (request, content, code, account, client, begun_at, outcome, signed_in_at)
      VALUES ($1, $2, $3, $4, $5,
        greatest($6, (SELECT max(requested_at) + 1 FROM siwa.deletion WHERE account = $4)), 'begun', 0)
      ON CONFLICT DO NOTHING
      """, exchange.request.bytes, exchange.content.bytes, exchange.code.bytes, exchange.account.bytes,
      exchange.client.text, exchange.begunAt.milliseconds)
    // A later statement: it sees the row that was in the way.
    batch.append(
      """
      SELECT request, content, outcome, signed_in_at FROM siwa.code_exchange WHERE request = $1 OR code = $2
      ORDER BY request = $1 DESC LIMIT 1
      """, exchange.request.bytes, exchange.code.bytes)
    let writing = batch
    let (isNew, row) = try await database.write { connection in
      var found: (request: [UInt8], content: [UInt8], outcome: String, at: Timestamp)?
      let counts = try await connection.run(writing) { execution, row throws(PostgreSQLError) in
        guard execution == 2 else { return }
        found = (
          request: try row.value(0), content: try row.value(1), outcome: try row.value(2), at: try row.time(3)
        )
      }
      return (counts[1] == 1, found)
    }
    if isNew { return .begun }
    guard let row else { throw AccountStoreError(.unavailable, "an exchange was forgotten meanwhile") }
    let standing = try exchange.standing(
      request: row.request, content: row.content, outcome: row.outcome, at: row.at)
    guard case .finished(let outcome, let time) = standing, outcome.isSignIn else { return standing }
    return try await isOver(exchange, at: time) ? .finished(.over, at: time) : standing
  }

  /// Whether the sign-in at `time` that came of an exchange was ended since.
  private func isOver(_ exchange: CodeExchange, at time: Timestamp) async throws(AccountStoreError) -> Bool {
    try await keyed.read(of: exchange.account) { connection, keys in
      let hash = keys.hashing.newest(of: exchange.account)
      var batch = Batch.byKey
      batch.appendStanding(of: hash)
      batch.appendLastDeletion(of: exchange.account)
      var (facts, ended) = (AccountFacts(), EndedAuthorizations())
      var deletion: Deletion?
      try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
        switch execution {
        case 1: facts = try AccountFacts(reading: row, from: 0)
        case 2: ended.endedAt[try row.value(0)] = try row.time(1)
        case 3: deletion = try Deletion(reading: row)
        default: break
        }
      }
      return exchange.isOver(at: time, facts, ended, deletion)
    }
  }

  /// Notes that nothing comes of an exchange.
  func end(_ exchange: CodeExchange, as ending: CodeExchange.Ending) async throws(AccountStoreError) {
    var batch = Batch()
    batch.end(exchange.request, ending.outcome, at: exchange.begunAt)
    let writing = batch
    _ = try await database.write { connection in try await connection.run(writing) }
  }

  /// Forgets an exchange.
  func forget(_ exchange: CodeExchange) async throws(AccountStoreError) {
    var batch = Batch()
    batch.append(
      "DELETE FROM siwa.code_exchange WHERE request = $1 AND outcome = 'begun'", exchange.request.bytes)
    let writing = batch
    _ = try await database.write { connection in try await connection.run(writing) }
  }

  /// What nothing came of.
  func unfinishedExchanges(
    before time: Timestamp, limit: Int
  ) async throws(AccountStoreError) -> [CodeExchange] {
    var batch = Batch()
    batch.append(
      """
      SELECT request, content, code, account, client, begun_at FROM siwa.code_exchange
      WHERE begun_at < $1 AND outcome = 'begun' ORDER BY begun_at LIMIT $2
      """, time.milliseconds, Int64(limit))
    let reading = batch
    return try await database.read { connection in
      var found: [CodeExchange] = []
      try await connection.run(reading) { _, row throws(PostgreSQLError) in
        guard let request = SHA256Digest(bytes: try row.value(0)), let content = SHA256Digest(bytes: try row.value(1)),
          let code = SHA256Digest(bytes: try row.value(2)), let account = AccountID(bytes: try row.value(3)),
          let client = ClientID(try row.value(4))
        else { throw .unexpectedValue("an exchange") }
        found.append(
          CodeExchange(
            request: request, content: content, code: code, account: account, client: client, begunAt: try row.time(5)))
      }
      return found
    }
  }

  /// What is known of an account.
  func knowledge(of id: AccountID) async throws(AccountStoreError) -> AccountKnowledge {
    try await keyed.read(of: id) { connection, keys in
      let hash = keys.hashing.newest(of: id)
      var batch = Batch.byKey
      batch.append(
        """
        SELECT relay.status, relay.since, relay.is_private, relay.address,
          data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
          team, subject, origin.from_team, origin.former, origin.client
        FROM (VALUES ($1)) AS asked (hash) LEFT JOIN siwa.relay USING (hash) LEFT JOIN siwa.account USING (hash)
          LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
          LEFT JOIN siwa.transferred_account AS origin ON origin.account = $2
        """, hash.bytes, id.bytes)
      batch.append(
        """
        SELECT client, max(issued_at), max(validated_at) FROM siwa.token
        WHERE hash = $1 AND kind = 'refresh' AND invalid_at IS NULL GROUP BY client
        """, hash.bytes)
      batch.append(
        """
        SELECT client FROM siwa.ended_authorization WHERE hash = $1
        UNION SELECT client FROM siwa.token WHERE hash = $1 AND invalid_at IS NOT NULL
        """, hash.bytes)
      var facts = ProfileFacts()
      try await connection.run(batch, holding: keys) { execution, row throws(PostgreSQLError) in
        switch execution {
        case 1:
          facts.relay = RelayFacts(
            relay: try SealedRelay(reading: row), account: try AccountFacts(reading: row, from: 4))
          guard let key = facts.relay.account.key else { return }
          facts.row = SealedAccount(hash: hash, team: try row.value(10), subject: try row.value(11), key: key)
          if try row.value(12, as: String?.self) != nil { facts.origin = try AccountOrigin(reading: row, from: 12) }
        case 2:
          guard let client = ClientID(try row.value(0)) else { throw .unexpectedValue("a token's client") }
          facts.signIns.append(
            AccountProfile.SignIn(client: client, time: try row.time(1), validatedAt: try row.timeIfPresent(2)))
        case 3: facts.ended.insert(try row.value(0))
        default: break
        }
      }
      return try facts.knowledge(of: hash, with: keys)
    }
  }
}

extension Connection {
  /// What bears on a claim, whose accounts are locked.
  fileprivate func facts(
    of claim: TransferClaim, _ account: Account, _ formers: [AccountID], _ keys: StoreKeys
  ) async throws -> ClaimFacts {
    let (identifier, id) = (keys.fingerprint(of: claim.subject), keys.id(of: account))
    var batch = Batch.byKey
    PostgreSQLArrivals.read([identifier], in: nil, [id] + formers, keys, in: &batch)
    batch.append("SELECT number, plan FROM siwa.transfer_user WHERE account = $1 AND state <> 'conflict'", id.bytes)
    var reading = PostgreSQLArrivals.Reading()
    var owners: [Int64: Int64] = [:]
    try await run(batch) { execution, row throws(PostgreSQLError) in
      if execution == 6 { owners[try row.value(1)] = try row.value(0) } else { try reading.add(row, of: execution - 1) }
    }
    let users = reading.users(of: identifier)
    reading.facts.sent[identifier] = try users.sent(to: account.team, with: claim.client, keys)
    if let former = reading.facts.sent[identifier]?.row.account, !formers.contains(former) {
      throw AccountStoreError.usersChanged
    }
    return ClaimFacts(users: users, owners: owners, arrivals: reading.facts)
  }
}

extension Batch {
  /// Adds two executions that read what bears on a sign-in: the account with its erasure, and its ended authorizations.
  fileprivate mutating func appendStanding(of hash: AccountHash) {
    append(
      """
      SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at
      FROM (VALUES ($1)) AS asked (hash) LEFT JOIN siwa.account USING (hash)
        LEFT JOIN siwa.erasure_fence AS erasure USING (hash)
      """, hash.bytes)
    append("SELECT client, issued_up_to FROM siwa.ended_authorization WHERE hash = $1", hash.bytes)
  }

  /// Adds an execution that notes what came of an exchange, where nothing has yet.
  fileprivate mutating func end(_ request: SHA256Digest, _ outcome: CodeExchange.Outcome, at time: Timestamp) {
    append(
      """
      UPDATE siwa.code_exchange SET outcome = $2, signed_in_at = $3 WHERE request = $1 AND outcome = 'begun'
      """, request.bytes, outcome.rawValue, time.milliseconds)
  }
}
