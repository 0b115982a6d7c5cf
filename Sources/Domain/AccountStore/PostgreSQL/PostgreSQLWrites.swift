import AccountEvents
import PostgreSQL

/// What is written, a statement for all rows of a table: a group of hundreds takes as many statements as one settlement.
enum PostgreSQLWrites {
  /// Adds all that the settlements have come to.
  static func write(
    _ judged: JudgedSettlements, at time: Timestamp, in batch: inout Batch
  ) throws(AccountStoreError) {
    try write(Array(judged.accounts.values), in: &batch)
    writeFences(judged, in: &batch)
    writeLedger(judged, at: time, in: &batch)
    writeAnnouncements(judged.announcements, in: &batch)
  }

  /// Adds what becomes of accounts.
  static func write(_ accounts: [ChangedAccount], in batch: inout Batch) throws(AccountStoreError) {
    var accounts = accounts
    try writeAccounts(accounts, in: &batch)
    try writeRelays(&accounts, in: &batch)
  }

  /// Rows go before rows come: an account that was erased may have begun anew.
  private static func writeAccounts(
    _ accounts: [ChangedAccount], in batch: inout Batch
  ) throws(AccountStoreError) {
    let deleted = accounts.filter(\.isDeleted)
    if !deleted.isEmpty {
      batch.append("DELETE FROM siwa.account WHERE hash = ANY ($1)", PostgreSQLArray(deleted.map(\.hash.bytes)))
    }
    let fences = accounts.filter(\.isFenced).compactMap { account in
      account.erasure.map { (hash: account.hash, fence: $0.fence, signedInAt: $0.signedInAt) }
    }
    if !fences.isEmpty {
      batch.append(
        """
        INSERT INTO siwa.erasure (hash, at, is_final, signed_in_at) SELECT * FROM unnest($1, $2, $3, $4)
        ON CONFLICT (hash) DO UPDATE
          SET at = excluded.at, is_final = excluded.is_final, signed_in_at = excluded.signed_in_at
        """, PostgreSQLArray(fences.map(\.hash.bytes)), PostgreSQLArray(fences.map(\.fence.at.milliseconds)),
        PostgreSQLArray(fences.map(\.fence.isFinal)), PostgreSQLArray(fences.map(\.signedInAt?.milliseconds)))
    }
    insert(accounts.compactMap(\.made), in: &batch)
    try insertTokens(of: accounts, in: &batch)
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

  /// Adds rows of accounts.
  static func insert(_ accounts: [SealedAccount], in batch: inout Batch) {
    guard !accounts.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.account (hash, team, subject, master_key_id, data_key, signed_in_at)
      SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
      """, PostgreSQLArray(accounts.map(\.hash.bytes)), PostgreSQLArray(accounts.map(\.team)),
      PostgreSQLArray(accounts.map(\.subject)), PostgreSQLArray(accounts.map(\.masterKeyID)),
      PostgreSQLArray(accounts.map(\.dataKey)), PostgreSQLArray(accounts.map(\.signedInAt?.milliseconds)))
  }

  private static func insertTokens(
    of accounts: [ChangedAccount], in batch: inout Batch
  ) throws(AccountStoreError) {
    var rows: [ChangedAccount.TokenRow] = []
    for account in accounts { rows += try account.sealedTokens() }
    guard !rows.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.token (hash, fingerprint, kind, client, issued_at, value)
      SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
      """, PostgreSQLArray(rows.map(\.hash.bytes)), PostgreSQLArray(rows.map(\.fingerprint)),
      PostgreSQLArray(rows.map(\.token.token.kind.rawValue)), PostgreSQLArray(rows.map(\.token.token.client.text)),
      PostgreSQLArray(rows.map(\.token.issuedAt.milliseconds)), PostgreSQLArray(rows.map(\.value)))
  }

  private static func writeRelays(
    _ accounts: inout [ChangedAccount], in batch: inout Batch
  ) throws(AccountStoreError) {
    var removed: [[UInt8]] = []
    var rows: [(hash: AccountHash, relay: SealedRelay)] = []
    for index in accounts.indices {
      let hash = accounts[index].hash
      if case .removed = accounts[index].relay { removed.append(hash.bytes) }
      if let relay = try accounts[index].sealedRelay() { rows.append((hash, relay)) }
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

  private static func writeFences(_ judged: JudgedSettlements, in batch: inout Batch) {
    let rows = judged.fences.flatMap { place, events in
      events.map { (place: place, severity: Int64($0.key), event: $0.value) }
    }
    guard !rows.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.fence (consumer, hash, severity, at, tie) SELECT * FROM unnest($1, $2, $3, $4, $5)
      ON CONFLICT (consumer, hash, severity) DO UPDATE SET at = excluded.at, tie = excluded.tie
        WHERE (excluded.at, excluded.tie) > (fence.at, fence.tie)
      """, PostgreSQLArray(rows.map(\.place.consumer.text)), PostgreSQLArray(rows.map(\.place.hash.bytes)),
      PostgreSQLArray(rows.map(\.severity)), PostgreSQLArray(rows.map(\.event.occurredAt.milliseconds)),
      PostgreSQLArray(rows.map { Int64($0.event.weight.tie) }))
  }

  private static func writeLedger(_ judged: JudgedSettlements, at time: Timestamp, in batch: inout Batch) {
    let rows = judged.ledger
    guard !rows.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.ledger (consumer, event_id, hash, outcome, topic, partition, "offset", at)
      SELECT *, $8 FROM unnest($1, $2, $3, $4, $5, $6, $7)
      """, PostgreSQLArray(rows.map(\.settlement.consumer.text)), PostgreSQLArray(rows.map(\.settlement.event.id.text)),
      PostgreSQLArray(rows.map(\.hash.bytes)), PostgreSQLArray(rows.map(\.outcome)),
      PostgreSQLArray(rows.map(\.settlement.event.origin.topic)),
      PostgreSQLArray(rows.map { Int64($0.settlement.event.origin.partition) }),
      PostgreSQLArray(rows.map(\.settlement.event.origin.offset)), time.milliseconds)
    let attempted = judged.attempted
    guard !attempted.isEmpty else { return }
    batch.append(
      """
      DELETE FROM siwa.attempt USING unnest($1, $2) AS settled (consumer, id)
      WHERE attempt.consumer = settled.consumer AND attempt.event_id = settled.id
      """, PostgreSQLArray(attempted.map(\.settlement.consumer.text)),
      PostgreSQLArray(attempted.map(\.settlement.event.id.text)))
  }

  private static func writeAnnouncements(_ rows: [SealedAnnouncements], in batch: inout Batch) {
    guard !rows.isEmpty else { return }
    batch.append(
      """
      INSERT INTO siwa.announcement (number, consumer, partition, records)
      SELECT * FROM unnest($1, $2, $3, $4)
      """, PostgreSQLArray(rows.map(\.number)), PostgreSQLArray(rows.map(\.consumer.text)),
      PostgreSQLArray(rows.map { Int64($0.partition) }), PostgreSQLArray(rows.map(\.records)))
  }
}
