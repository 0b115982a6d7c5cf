import AccountEvents
import PostgreSQL

extension PostgreSQLAccountStore {
  /// The lease of that name.
  func lease(_ name: String) async throws(AccountStoreError) -> Lease? {
    try await database.read { connection in
      try await connection.first("SELECT holder, until FROM siwa.lease WHERE name = $1", name) {
        row throws(PostgreSQLError) in Lease(name: name, holder: try row.value(0), until: try row.value(1))
      }
    }
  }

  /// Takes a lease, if it stands as it did.
  func take(_ lease: Lease, after seen: Lease?) async throws(AccountStoreError) -> Bool {
    let changed = try await database.write { connection in
      if let seen {
        return try await connection.execute(
          "UPDATE siwa.lease SET holder = $2, until = $3 WHERE name = $1 AND holder = $4 AND until = $5", lease.name,
          lease.holder, lease.until, seen.holder, seen.until)
      }
      return try await connection.execute(
        "INSERT INTO siwa.lease (name, holder, until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", lease.name,
        lease.holder, lease.until)
    }
    return changed > 0
  }

  /// Gives a lease up.
  func giveUp(_ lease: Lease) async throws(AccountStoreError) {
    _ = try await database.write { connection in
      try await connection.execute(
        "DELETE FROM siwa.lease WHERE name = $1 AND holder = $2", lease.name, lease.holder)
    }
  }

  /// Gives tokens out. Nobody is waited for: a token whose row somebody changes is given out the next time.
  func claimTokens(
    _ count: Int, without clients: Set<ClientID>, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> ClaimedTokens? {
    try await keyed.write(to: []) { connection, keys in
      let renewed = lease.renewed(at: time)
      var reading = Batch.locked
      let first = reading.count
      reading.append(
        "UPDATE siwa.lease SET until = $3 WHERE name = $1 AND holder = $2", renewed.name, renewed.holder, renewed.until)
      reading.append(
        """
        SELECT kind, client, issued_at, value, claimed_at, number, token.hash, team, subject, data_key, master_key_id
        FROM siwa.token JOIN siwa.account ON account.hash = token.hash
        WHERE kind = 'refresh' AND invalid_at IS NULL AND coalesce(claimed_at, issued_at) <= $1 AND client <> ALL ($2)
        ORDER BY coalesce(claimed_at, issued_at) LIMIT $3 FOR UPDATE OF token SKIP LOCKED
        """, (time - TokenValidation.interval).milliseconds, PostgreSQLArray(clients.map(\.text)), Int64(count))
      var (numbers, rows): ([Int64], [SealedDueToken]) = ([], [])
      let counts = try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        guard execution == first + 1 else { return }
        let key = AccountFacts.WrappedKey(bytes: try row.value(9), masterKeyID: try row.value(10))
        numbers.append(try row.value(5))
        rows.append(
          SealedDueToken(
            token: try SealedToken(reading: row), claimedBefore: try row.timeIfPresent(4),
            account: SealedAccount(
              hash: try row.hash(6), team: try row.value(7), subject: try row.value(8), key: key)))
      }
      // Nothing is written where the lease is somebody else's.
      guard counts[first] == 1 else { return nil }
      if !numbers.isEmpty {
        _ = try await connection.execute(
          "UPDATE siwa.token SET claimed_at = $2 WHERE number = ANY ($1)", PostgreSQLArray(numbers), time.milliseconds)
      }
      return try ClaimedTokens(opening: rows, claimedAt: time, keys)
    }
  }

  /// Writes findings. The accounts of those are locked that are not good: what is judged holds until the commit.
  func record(
    _ validations: [TokenValidation], at time: Timestamp
  ) async throws(AccountStoreError) -> [RecordedValidation] {
    guard !validations.isEmpty else { return [] }
    return try await keyed.write(to: validations.lazy.map(\.token.account)) { connection, keys in
      let hashes = Array(validations.hashesOfInvalid(keys))
      var reading = Batch.locked
      if !hashes.isEmpty { reading.lock(hashes, keys) }
      let first = reading.count
      reading.append(
        """
        SELECT hash, client, fingerprint, issued_at, invalid_at FROM siwa.token
        WHERE hash = ANY ($1) AND kind = 'refresh'
        """, PostgreSQLArray(hashes.map(\.bytes)))
      var held: [HeldCredential] = []
      try await connection.run(locked: reading, keys) { execution, row throws(PostgreSQLError) in
        guard execution == first else { return }
        guard let client = ClientID(try row.value(1)) else { throw .unexpectedValue("a token's client") }
        held.append(
          HeldCredential(
            place: HeldCredential.Place(hash: try row.hash(0), client: client, fingerprint: try row.value(2)),
            issuedAt: try row.time(3), isInvalid: try row.timeIfPresent(4) != nil))
      }
      let judged = try JudgedValidations(validations, held: held, at: time, keys)
      var writing = Batch()
      writing.write(judged, at: time)
      for event in judged.events { writing.add(event) }
      if writing.count > 0 { _ = try await connection.run(writing) }
      return judged.outcomes
    }
  }

  /// How far it is.
  func validationCensus(at time: Timestamp) async throws(AccountStoreError) -> ValidationCensus {
    let census = try await database.read { connection in
      try await connection.first(
        """
        SELECT count(*), count(*) FILTER (WHERE coalesce(claimed_at, issued_at) <= $1),
          min(claimed_at) FILTER (WHERE claimed_at <= $1)
        FROM siwa.token WHERE kind = 'refresh' AND invalid_at IS NULL
        """, (time - TokenValidation.interval).milliseconds
      ) { row throws(PostgreSQLError) in
        ValidationCensus(
          tokens: try row.count(0) ?? 0, due: try row.count(1) ?? 0,
          dueSince: try row.timeIfPresent(2).map { $0 + TokenValidation.interval })
      }
    }
    return census ?? ValidationCensus(tokens: 0, due: 0, dueSince: nil)
  }

  /// How many tokens there are of an app, counted up to `limit`.
  func refreshTokens(of client: ClientID, upTo limit: Int) async throws(AccountStoreError) -> Int {
    let count = try await database.read { connection in
      try await connection.first(
        """
        SELECT count(*) FROM (
          SELECT 1 FROM siwa.token WHERE kind = 'refresh' AND invalid_at IS NULL AND client = $1 LIMIT $2) AS held
        """, client.text, Int64(limit)
      ) { row throws(PostgreSQLError) in try row.count(0) ?? 0 }
    }
    return count ?? 0
  }
}

extension Batch {
  /// Adds what findings have come to, but for their events. Rows are written in one order, so that nobody waits for each
  /// other.
  fileprivate mutating func write(_ judged: JudgedValidations, at time: Timestamp) {
    if !judged.good.isEmpty {
      let places = judged.good
      append(
        """
        UPDATE siwa.token SET validated_at = $4 FROM unnest($1, $2, $3) AS found (hash, client, fingerprint)
        WHERE token.hash = found.hash AND token.client = found.client AND token.fingerprint = found.fingerprint
          AND token.kind = 'refresh' AND token.invalid_at IS NULL
        """, PostgreSQLArray(places.map(\.hash.bytes)), PostgreSQLArray(places.map(\.client.text)),
        PostgreSQLArray(places.map(\.fingerprint)), time.milliseconds)
    }
    if !judged.invalid.isEmpty {
      let places = judged.invalid
      append(
        """
        UPDATE siwa.token SET validated_at = $4, invalid_at = $4
        FROM unnest($1, $2, $3) AS found (hash, client, fingerprint)
        WHERE token.hash = found.hash AND token.client = found.client AND token.fingerprint = found.fingerprint
          AND token.kind = 'refresh'
        """, PostgreSQLArray(places.map(\.hash.bytes)), PostgreSQLArray(places.map(\.client.text)),
        PostgreSQLArray(places.map(\.fingerprint)), time.milliseconds)
    }
    if !judged.released.isEmpty {
      let tokens = judged.released
      append(
        """
        UPDATE siwa.token SET claimed_at = found.before
        FROM unnest($1, $2, $3, $4, $5) AS found (hash, client, fingerprint, claimed, before)
        WHERE token.hash = found.hash AND token.client = found.client AND token.fingerprint = found.fingerprint
          AND token.kind = 'refresh' AND token.claimed_at = found.claimed
        """, PostgreSQLArray(tokens.map(\.place.hash.bytes)), PostgreSQLArray(tokens.map(\.place.client.text)),
        PostgreSQLArray(tokens.map(\.place.fingerprint)), PostgreSQLArray(tokens.map(\.claimedAt.milliseconds)),
        PostgreSQLArray(tokens.map(\.claimedBefore?.milliseconds)))
    }
  }
}
