package import AccountEvents
import SQLite

/// Which refresh tokens are to be validated, what came of it, and who sees to that.
final class SQLiteValidation {
  private let leaseReading: Statement
  private let leaseInsertion: Statement
  private let leaseTaking: Statement
  private let leaseRenewal: Statement
  private let leaseRemoval: Statement
  private let due: Statement
  private let claim: Statement
  private let held: Statement
  private let good: Statement
  private let invalid: Statement
  private let release: Statement
  private let census: Statement
  private let ofClient: Statement
  private let database: Database

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    leaseReading = try database.prepare("SELECT holder, until FROM lease WHERE name = ?")
    leaseInsertion = try database.prepare(
      "INSERT INTO lease (name, holder, until) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
    leaseTaking = try database.prepare(
      "UPDATE lease SET holder = ?2, until = ?3 WHERE name = ?1 AND holder = ?4 AND until = ?5")
    leaseRenewal = try database.prepare("UPDATE lease SET until = ?3 WHERE name = ?1 AND holder = ?2")
    leaseRemoval = try database.prepare("DELETE FROM lease WHERE name = ? AND holder = ?")
    due = try database.prepare(
      """
      SELECT token.kind, token.client, issued_at, value, claimed_at, number, token.hash, team, subject, data_key,
        master_key_id
      FROM token JOIN account ON account.hash = token.hash
      WHERE kind = 'refresh' AND invalid_at IS NULL AND coalesce(claimed_at, issued_at) <= ?1
        AND client NOT IN (SELECT value FROM json_each(?2))
      ORDER BY coalesce(claimed_at, issued_at) LIMIT ?3
      """)
    claim = try database.prepare("UPDATE token SET claimed_at = ?2 WHERE number = ?1")
    held = try database.prepare(
      "SELECT client, fingerprint, issued_at, invalid_at FROM token WHERE hash = ? AND kind = 'refresh'")
    good = try database.prepare(
      """
      UPDATE token SET validated_at = ?4
      WHERE hash = ?1 AND client = ?2 AND kind = 'refresh' AND fingerprint = ?3 AND invalid_at IS NULL
      """)
    invalid = try database.prepare(
      """
      UPDATE token SET validated_at = ?4, invalid_at = ?4
      WHERE hash = ?1 AND client = ?2 AND kind = 'refresh' AND fingerprint = ?3
      """)
    release = try database.prepare(
      """
      UPDATE token SET claimed_at = ?5
      WHERE hash = ?1 AND client = ?2 AND kind = 'refresh' AND fingerprint = ?3 AND claimed_at = ?4
      """)
    census = try database.prepare(
      """
      SELECT count(*), count(*) FILTER (WHERE coalesce(claimed_at, issued_at) <= ?1),
        min(coalesce(claimed_at, issued_at)) FILTER (WHERE claimed_at <= ?1)
      FROM token WHERE kind = 'refresh' AND invalid_at IS NULL
      """)
    ofClient = try database.prepare(
      """
      SELECT count(*)
      FROM (SELECT 1 FROM token WHERE kind = 'refresh' AND invalid_at IS NULL AND client = ?1 LIMIT ?2)
      """)
  }

  /// The lease as it stands.
  func lease(_ name: String) throws(SQLiteError) -> Lease? {
    try leaseReading.first(name) { row throws(SQLiteError) in
      Lease(name: name, holder: try row.value(0), until: try row.value(1))
    }
  }

  /// Takes it, if it stands as it did.
  func take(_ lease: Lease, after seen: Lease?) throws(SQLiteError) -> Bool {
    if let seen {
      try leaseTaking.run(lease.name, lease.holder, lease.until, seen.holder, seen.until)
    } else {
      try leaseInsertion.run(lease.name, lease.holder, lease.until)
    }
    return database.changes > 0
  }

  /// Renews it, if it is still the holder's.
  func renew(_ lease: Lease) throws(SQLiteError) -> Bool {
    try leaseRenewal.run(lease.name, lease.holder, lease.until)
    return database.changes > 0
  }

  /// Gives it up.
  func giveUp(_ lease: Lease) throws(SQLiteError) { try leaseRemoval.run(lease.name, lease.holder) }

  /// Gives tokens out.
  func claim(
    notSince limit: Timestamp, at time: Timestamp, _ count: Int, without clients: Set<ClientID>
  ) throws(SQLiteError) -> [SealedDueToken] {
    var rows: [(number: Int64, token: SealedDueToken)] = []
    let names = "[" + clients.map { "\"\($0.text)\"" }.joined(separator: ",") + "]"
    try due.forEach(limit.milliseconds, names, Int64(count)) { row throws(SQLiteError) in
      let hash = try row.hash(6)
      let key = AccountFacts.WrappedKey(bytes: try row.value(9), masterKeyID: try row.value(10))
      rows.append(
        (
          try row.value(5),
          SealedDueToken(
            token: try SealedToken(reading: row), claimedBefore: try row.timeIfPresent(4),
            account: SealedAccount(hash: hash, team: try row.value(7), subject: try row.value(8), key: key))
        ))
    }
    for row in rows { try claim.run(row.number, time.milliseconds) }
    return rows.map(\.token)
  }

  /// The account's refresh tokens.
  func held(by hash: AccountHash) throws(SQLiteError) -> [HeldCredential] {
    var held: [HeldCredential] = []
    try self.held.forEach(hash.bytes) { row throws(SQLiteError) in
      guard let client = ClientID(try row.value(0)) else { throw .malformed("a token's client") }
      held.append(
        HeldCredential(
          place: HeldCredential.Place(hash: hash, client: client, fingerprint: try row.value(1)),
          issuedAt: try row.time(2), isInvalid: try row.timeIfPresent(3) != nil))
    }
    return held
  }

  /// Writes what findings have come to, but for their events.
  func write(_ judged: JudgedValidations, at time: Timestamp) throws(SQLiteError) {
    for place in judged.good {
      try good.run(place.hash.bytes, place.client.text, place.fingerprint, time.milliseconds)
    }
    for place in judged.invalid {
      try invalid.run(place.hash.bytes, place.client.text, place.fingerprint, time.milliseconds)
    }
    for token in judged.released {
      try release.run(
        token.place.hash.bytes, token.place.client.text, token.place.fingerprint, token.claimedAt.milliseconds,
        token.claimedBefore?.milliseconds)
    }
  }

  /// How far it is.
  func census(dueNotSince limit: Timestamp) throws(SQLiteError) -> ValidationCensus {
    let census = try census.first(limit.milliseconds) { row throws(SQLiteError) in
      ValidationCensus(
        tokens: try row.count(0) ?? 0, due: try row.count(1) ?? 0,
        dueSince: try row.timeIfPresent(2).map { $0 + TokenValidation.interval })
    }
    return census ?? ValidationCensus(tokens: 0, due: 0, dueSince: nil)
  }

  /// How many tokens there are of an app, counted up to `limit`.
  func count(of client: ClientID, upTo limit: Int) throws(SQLiteError) -> Int {
    let count = try ofClient.first(client.text, Int64(limit)) { row throws(SQLiteError) in try row.count(0) ?? 0 }
    return count ?? 0
  }
}

extension SQLiteStoreFile {
  /// Gives tokens out, unless the lease is somebody else's.
  fileprivate func claimTokens(
    _ count: Int, without clients: Set<ClientID>, under lease: Lease, at time: Timestamp
  ) throws(AccountStoreError) -> ClaimedTokens? {
    try write { () throws(AccountStoreError) in
      let rows = try AccountStoreError.translating { () throws(SQLiteError) -> [SealedDueToken]? in
        guard try validation.renew(lease.renewed(at: time)) else { return nil }
        if count == 0 { return [] }
        return try validation.claim(notSince: time - TokenValidation.interval, at: time, count, without: clients)
      }
      return try rows.map { rows throws(AccountStoreError) in
        try ClaimedTokens(opening: rows, claimedAt: time, keys)
      }
    }
  }

  /// Writes findings.
  fileprivate func record(
    _ validations: [TokenValidation], at time: Timestamp
  ) throws(AccountStoreError) -> [RecordedValidation] {
    try write { () throws(AccountStoreError) in
      try move(validations.lazy.map(\.token.account))
      let held = try AccountStoreError.translating { () throws(SQLiteError) in
        var held: [HeldCredential] = []
        for hash in validations.hashesOfInvalid(keys) { held += try validation.held(by: hash) }
        return held
      }
      let judged = try JudgedValidations(validations, held: held, at: time, keys)
      try AccountStoreError.translating { () throws(SQLiteError) in
        try validation.write(judged, at: time)
        for event in judged.events { try outbox.add(event) }
      }
      return judged.outcomes
    }
  }
}

extension SQLiteAccountStore {
  /// The lease of that name.
  package func lease(_ name: String) async throws(AccountStoreError) -> Lease? {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.validation.lease(name) }
    }
  }

  /// Takes a lease.
  package func take(_ lease: Lease, after seen: Lease?) async throws(AccountStoreError) -> Bool {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in try file.validation.take(lease, after: seen) }
    }
  }

  /// Gives a lease up.
  package func giveUp(_ lease: Lease) async throws(AccountStoreError) {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in try file.validation.giveUp(lease) }
    }
  }

  /// Gives tokens out to be validated.
  package func claimTokens(
    _ count: Int, without clients: Set<ClientID>, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> ClaimedTokens? {
    try await writer.run { file throws(AccountStoreError) in
      try file.claimTokens(count, without: clients, under: lease, at: time)
    }
  }

  /// Writes findings.
  package func record(
    _ validations: [TokenValidation], at time: Timestamp
  ) async throws(AccountStoreError) -> [RecordedValidation] {
    try await writer.run { file throws(AccountStoreError) in try file.record(validations, at: time) }
  }

  /// How far it is.
  package func validationCensus(at time: Timestamp) async throws(AccountStoreError) -> ValidationCensus {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in
        try file.validation.census(dueNotSince: time - TokenValidation.interval)
      }
    }
  }

  /// How many tokens there are of an app.
  package func refreshTokens(of client: ClientID, upTo limit: Int) async throws(AccountStoreError) -> Int {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.validation.count(of: client, upTo: limit) }
    }
  }
}
