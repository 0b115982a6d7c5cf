import AccountEvents
import PostgreSQL

/// What is written, a statement for all rows of a table: a group of hundreds takes as many statements as one settlement.
enum PostgreSQLWrites {
  /// Adds all that the settlements have come to.
  static func write(
    _ judged: JudgedSettlements, of settlements: [Settlement], at time: Timestamp, _ keys: StoreKeys,
    in batch: inout Batch
  ) throws(AccountStoreError) {
    try write(judged.accounts, keys, in: &batch)
    writeFences(of: judged.accounts, in: &batch)
    writeLedger(judged.ledger, of: settlements, at: time, generation: keys.generation, in: &batch)
    for settlement in settlements {
      for step in settlement.steps {
        PostgreSQLErasures.record(step, of: settlement.event, generation: keys.generation, in: &batch)
      }
    }
    for event in judged.events { batch.add(event) }
  }

  /// Adds what becomes of accounts. Rows go before rows come: one that was erased may have begun anew.
  static func write(
    _ changed: [ChangedAccount], _ keys: StoreKeys, in batch: inout Batch
  ) throws(AccountStoreError) {
    var accounts = changed
    writeRows(of: accounts, in: &batch)
    try writeTokens(of: &accounts, keys, in: &batch)
    writeEnds(of: accounts, in: &batch)
    try writeRelays(of: &accounts, keys, in: &batch)
    PostgreSQLTransfers.remove(accounts.compactMap(\.erasedID), in: &batch)
  }

  private static func writeRows(of accounts: [ChangedAccount], in batch: inout Batch) {
    let deleted = accounts.filter(\.isDeleted)
    if !deleted.isEmpty {
      batch.append("DELETE FROM siwa.account WHERE hash = ANY ($1)", PostgreSQLArray(deleted.map(\.hash.bytes)))
    }
    let fences = accounts.filter(\.isFenced).compactMap { account in
      account.facts.erasure.map { (hash: account.hash, fence: $0, signedInAt: account.facts.erasureSignedInAt) }
    }
    if !fences.isEmpty {
      batch.append(
        """
        INSERT INTO siwa.erasure_fence (hash, at, is_final, signed_in_at) SELECT * FROM unnest($1, $2, $3, $4)
        ON CONFLICT (hash) DO UPDATE
          SET at = excluded.at, is_final = excluded.is_final, signed_in_at = excluded.signed_in_at
        """, PostgreSQLArray(fences.map(\.hash.bytes)), PostgreSQLArray(fences.map(\.fence.at.milliseconds)),
        PostgreSQLArray(fences.map(\.fence.isFinal)), PostgreSQLArray(fences.map(\.signedInAt?.milliseconds)))
    }
    let made = accounts.compactMap(\.made)
    if !made.isEmpty {
      batch.append(
        """
        INSERT INTO siwa.account (hash, team, subject, master_key_id, data_key, signed_in_at)
        SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
        """, PostgreSQLArray(made.map(\.hash.bytes)), PostgreSQLArray(made.map(\.team)),
        PostgreSQLArray(made.map(\.subject)), PostgreSQLArray(made.map(\.key.masterKeyID)),
        PostgreSQLArray(made.map(\.key.bytes)), PostgreSQLArray(made.map(\.signedInAt?.milliseconds)))
    }
    for account in accounts {
      if let time = account.signIn {
        batch.append(
          "UPDATE siwa.account SET signed_in_at = $2 WHERE hash = $1", account.hash.bytes, time.milliseconds)
      }
    }
  }

  private static func writeEnds(of accounts: [ChangedAccount], in batch: inout Batch) {
    let revoked = accounts.flatMap { account in
      account.ownRevocations.values.map { (hash: account.hash, revocation: $0) }
    }
    if !revoked.isEmpty {
      batch.append(
        """
        INSERT INTO siwa.own_revocation (hash, client, at, is_proven) SELECT * FROM unnest($1, $2, $3, $4)
        ON CONFLICT (hash, client) DO UPDATE SET at = excluded.at, is_proven = excluded.is_proven
        """, PostgreSQLArray(revoked.map(\.hash.bytes)), PostgreSQLArray(revoked.map(\.revocation.client.text)),
        PostgreSQLArray(revoked.map(\.revocation.time.milliseconds)),
        PostgreSQLArray(revoked.map(\.revocation.isProven)))
    }
    let ended = accounts.flatMap { account in
      account.endedAuthorizations.map { (hash: account.hash, client: $0.key, at: $0.value) }
    }
    if !ended.isEmpty {
      let (hashes, clients, times) = (
        PostgreSQLArray(ended.map(\.hash.bytes)), PostgreSQLArray(ended.map(\.client)),
        PostgreSQLArray(ended.map(\.at.milliseconds))
      )
      batch.append(
        """
        DELETE FROM siwa.token USING unnest($1, $2, $3) AS ended (hash, client, at)
        WHERE token.hash = ended.hash AND token.issued_at <= ended.at AND ended.client IN ('', token.client)
        """, hashes, clients, times)
      batch.append(
        """
        INSERT INTO siwa.ended_authorization (hash, client, issued_up_to) SELECT * FROM unnest($1, $2, $3)
        ON CONFLICT (hash, client) DO UPDATE
          SET issued_up_to = greatest(ended_authorization.issued_up_to, excluded.issued_up_to)
        """, hashes, clients, times)
    }
  }

  private static func writeTokens(
    of accounts: inout [ChangedAccount], _ keys: StoreKeys, in batch: inout Batch
  ) throws(AccountStoreError) {
    var rows: [(hash: AccountHash, row: ChangedAccount.TokenRow)] = []
    for index in accounts.indices {
      let hash = accounts[index].hash
      rows += try accounts[index].sealedTokens(keys).map { (hash, $0) }
    }
    // One after the other: a sign-in may bring a token twice.
    for (hash, row) in rows {
      let (token, marks) = (row.token.token, row.token.marks)
      batch.append(
        """
        INSERT INTO siwa.token (
          hash, fingerprint, kind, client, issued_at, value, claimed_at, validated_at, invalid_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (hash, client, kind, fingerprint) DO UPDATE
          SET issued_at = greatest(token.issued_at, excluded.issued_at)
        """, hash.bytes, row.fingerprint, token.kind.rawValue, token.client.text, row.token.issuedAt.milliseconds,
        row.value, marks.claimedAt?.milliseconds, marks.validatedAt?.milliseconds, marks.invalidAt?.milliseconds)
    }
    for account in accounts {
      for app in account.signedInTo {
        batch.append(
          """
          DELETE FROM siwa.token WHERE hash = $1 AND client = $2 AND kind = 'refresh' AND number NOT IN (
            SELECT number FROM siwa.token WHERE hash = $1 AND client = $2 AND kind = 'refresh' AND invalid_at IS NULL
            ORDER BY issued_at DESC, number DESC LIMIT $3)
          """, account.hash.bytes, app.text, StoredToken.mostOfAnApp)
      }
    }
  }

  private static func writeRelays(
    of accounts: inout [ChangedAccount], _ keys: StoreKeys, in batch: inout Batch
  ) throws(AccountStoreError) {
    var removed: [[UInt8]] = []
    var rows: [(hash: AccountHash, relay: SealedRelay)] = []
    for index in accounts.indices {
      let hash = accounts[index].hash
      if case .removed = accounts[index].relay { removed.append(hash.bytes) }
      if let relay = try accounts[index].sealedRelay(keys) { rows.append((hash, relay)) }
    }
    if !removed.isEmpty {
      batch.append("DELETE FROM siwa.relay WHERE hash = ANY ($1)", PostgreSQLArray(removed))
    }
    guard !rows.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.relay (hash, status, since, is_private, address) SELECT * FROM unnest($1, $2, $3, $4, $5)
      ON CONFLICT (hash) DO UPDATE SET status = excluded.status, since = excluded.since,
        is_private = excluded.is_private, address = excluded.address
      """, PostgreSQLArray(rows.map(\.hash.bytes)), PostgreSQLArray(rows.map(\.relay.status.rawValue)),
      PostgreSQLArray(rows.map(\.relay.since.milliseconds)), PostgreSQLArray(rows.map(\.relay.isPrivate)),
      PostgreSQLArray(rows.map(\.relay.address)))
  }

  /// Adds the fences that accounts get.
  static func writeFences(of accounts: [ChangedAccount], in batch: inout Batch) {
    let rows = accounts.flatMap { account in account.fences.map { (hash: account.hash, fence: $0) } }
    guard !rows.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.fence (consumer, hash, severity, at, tie) SELECT * FROM unnest($1, $2, $3, $4, $5)
      ON CONFLICT (consumer, hash, severity) DO UPDATE SET at = excluded.at, tie = excluded.tie
        WHERE (excluded.at, excluded.tie) > (fence.at, fence.tie)
      """, PostgreSQLArray(rows.map(\.fence.consumer.text)), PostgreSQLArray(rows.map(\.hash.bytes)),
      PostgreSQLArray(rows.map { Int64($0.fence.severity) }), PostgreSQLArray(rows.map(\.fence.at.milliseconds)),
      PostgreSQLArray(rows.map { Int64($0.fence.tie) }))
  }

  private static func writeLedger(
    _ rows: [JudgedSettlements.LedgerRow], of settlements: [Settlement], at time: Timestamp, generation: Int64,
    in batch: inout Batch
  ) {
    guard !rows.isEmpty else { return }
    let settled = rows.map { settlements[$0.index] }
    batch.append(
      """
      INSERT INTO siwa.ledger (consumer, event_id, hash, outcome, detail, topic, partition, "offset", at, generation)
      SELECT *, $9, $10 FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
      """, PostgreSQLArray(settled.map(\.consumer.text)), PostgreSQLArray(settled.map(\.event.id.text)),
      PostgreSQLArray(settled.map(\.event.hash.bytes)), PostgreSQLArray(rows.map(\.outcome)),
      PostgreSQLArray(rows.map(\.detail)), PostgreSQLArray(settled.map(\.event.origin.topic)),
      PostgreSQLArray(settled.map { Int64($0.event.origin.partition) }),
      PostgreSQLArray(settled.map(\.event.origin.offset)), time.milliseconds, generation)
    let attempted = rows.filter(\.hadAttempts).map { settlements[$0.index] }
    guard !attempted.isEmpty else { return }
    batch.append(
      """
      DELETE FROM siwa.attempt USING unnest($1, $2) AS settled (consumer, id)
      WHERE attempt.consumer = settled.consumer AND attempt.event_id = settled.id
      """, PostgreSQLArray(attempted.map(\.consumer.text)), PostgreSQLArray(attempted.map(\.event.id.text)))
  }

  /// Adds an execution for each mark, in the order in which everybody raises them; those whose claim is not the last one
  /// change nothing.
  static func raise(_ marks: [AnnouncedMark], in batch: inout Batch) {
    for mark in marks {
      batch.append(
        """
        UPDATE siwa.announced SET "offset" = greatest("offset", $5), beyond = CASE WHEN "offset" <= $5 THEN $6 ELSE beyond END
        WHERE consumer = $1 AND topic = $2 AND partition = $3 AND claim = $4
        """, mark.consumer.text, mark.partition.topic, Int64(mark.partition.partition), mark.claim, mark.offset,
        mark.beyond)
    }
  }
}
