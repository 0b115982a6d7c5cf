import AccountEvents
import EventLoop
import PostgreSQL

/// The database of a store: its connections, its version, and what its errors mean.
@Loop
final class PostgreSQLStoreDatabase {
  /// What nobody asks for at once, but tests and operators may: a program's own limits are lower.
  static let limit = ResultLimit(rows: 1_000_000, bytes: 1 << 30)

  /// How often it is tried to lock the keys, before the caller is told.
  private static let attemptsAtKeys = 6

  private let pool: ConnectionPool

  /// A pool for the database that `connectionInfo` names.
  init(_ connectionInfo: String, connections: Int, statementTimeout: Duration) throws(AccountStoreError) {
    do throws(PostgreSQLError) {
      let configuration = try PostgreSQLConfiguration(
        connectionInfo: connectionInfo, size: connections, connectTimeout: .seconds(10), leaseTimeout: .seconds(20),
        statementTimeout: statementTimeout, responseTimeout: statementTimeout + .seconds(15),
        defaultIsolation: .readCommitted, transactionAttempts: 5)
      pool = ConnectionPool(configuration, jitter: { Double.random(in: 0..<1) }, log: { _ in })
    } catch {
      throw AccountStoreError(error)
    }
  }

  /// Runs `body` in a transaction that may change something; again, where others that ran beside it or a lost connection
  /// have kept it from being committed.
  func write<Value>(_ body: @Loop (Connection) async throws -> Value) async throws(AccountStoreError) -> Value {
    do { return try await pool.transaction(.readCommitted, body) } catch { throw Self.meaning(of: error) }
  }

  /// Runs `body`, which only reads, with a connection; again, where a lost one has kept it from its end.
  func read<Value>(_ body: @Loop (Connection) async throws -> Value) async throws(AccountStoreError) -> Value {
    do { return try await pool.read(body) } catch { throw Self.meaning(of: error, reading: true) }
  }

  /// Runs `body`, which only reads, as of one moment.
  func snapshot<Value>(_ body: @Loop (Connection) async throws -> Value) async throws(AccountStoreError) -> Value {
    do { return try await pool.transaction(.repeatableRead, body) } catch {
      throw Self.meaning(of: error, reading: true)
    }
  }

  /// Runs `body` in a transaction beside which nobody writes: who writes locks the keys. Behind one that waits for them all
  /// others wait, so it does for no longer than `patience` at a time; then those that have queued behind come first.
  func lockingKeys<Value>(
    waiting patience: Duration = .seconds(10), _ body: @Loop (Connection) async throws -> Value
  ) async throws(AccountStoreError) -> Value {
    let limit = "\(max(1, patience.wholeNanoseconds / 1_000_000))ms"
    for _ in 1..<Self.attemptsAtKeys {
      do throws(AccountStoreError) {
        return try await write { connection in try await connection.lockKeys(limit, body) }
      } catch {
        guard error == .heldKeys else { throw error }
      }
    }
    return try await write { connection in try await connection.lockKeys(limit, body) }
  }

  /// Ends all connections, once what is under way has come to its end.
  func close() async { await pool.close(within: .seconds(30)) }

  private static func meaning(of error: any Error, reading: Bool = false) -> AccountStoreError {
    if let own = error as? AccountStoreError { return own }
    guard let failure = error as? PostgreSQLError else { return AccountStoreError(.failed, "\(error)") }
    return AccountStoreError(failure, reading: reading)
  }
}

extension AccountStoreError {
  /// The keys could not be locked. Nothing was changed.
  fileprivate static let heldKeys = AccountStoreError(
    .unavailable, "a transaction of another program holds its hashing keys for long")
}

extension Connection {
  /// Runs `body` once nobody else holds the keys any more, for which it waits so long.
  fileprivate func lockKeys<Value>(
    _ limit: String, _ body: @Loop (Connection) async throws -> Value
  ) async throws -> Value {
    try await execute("SELECT set_config('lock_timeout', $1, true)", limit)
    do {
      try await execute("LOCK siwa.hash_key IN EXCLUSIVE MODE")
    } catch  where error.code == .lock {
      throw AccountStoreError.heldKeys
    }
    return try await body(self)
  }

  /// Throws unless the store is of the version that this program knows; returns its keys.
  func openKeys(with master: MasterKey) async throws -> StoreKeys {
    let found = try await storeVersion()
    guard found == PostgreSQLMigrations.version else {
      if found == 0 { throw AccountStoreError.none(at: "in the database") }
      throw AccountStoreError(
        .notMigrated,
        "it is of version \(found), and this program needs \(PostgreSQLMigrations.version); run `siwa store migrate`")
    }
    return try await readKeys(with: master)
  }

  /// Throws where the server forgets in a power cut what it has said to be committed.
  func expectDurability() async throws {
    let careless = try await execute(
      "SELECT FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit') AND setting = 'off'")
    guard careless == 0 else {
      throw AccountStoreError(
        .failed, "the server has fsync or synchronous_commit off: it would forget what was committed")
    }
  }

  /// Throws where the user that is connected may not do what the programs do, as with a table that an update has made.
  ///
  /// The tables of keys and versions are written by whoever administers the store alone; a column of identity needs no right
  /// to its sequence.
  func expectRights() async throws {
    var missing: String?
    try await forEach(
      """
      SELECT needed.name || ' on siwa.' || object.relname
      FROM pg_class object JOIN
        (VALUES ('r', 'SELECT'), ('r', 'INSERT'), ('r', 'UPDATE'), ('r', 'DELETE'), ('S', 'USAGE')) needed (kind, name)
        ON object.relkind = needed.kind::"char"
      WHERE object.relnamespace = to_regnamespace('siwa') AND object.relname NOT IN ('migration', 'hash_key')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = object.oid AND deptype = 'i')
        AND NOT CASE object.relkind
          WHEN 'S' THEN has_sequence_privilege(object.oid, needed.name)
          ELSE has_table_privilege(object.oid, needed.name) END
      ORDER BY object.relname LIMIT 1
      """, limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in missing = try row.value(0) }
    if let missing { throw AccountStoreError(.failed, "the programs' user has no right to \(missing)") }
  }

  /// The store's own keys.
  func readKeys(with master: MasterKey) async throws -> StoreKeys {
    try StoreKeys(try await readWrappedKeys(), with: master)
  }

  /// The same, as they are kept.
  func readWrappedKeys() async throws -> StoreKeys.Wrapped {
    var wrapped = StoreKeys.Wrapped()
    try await forEach(
      "SELECT number, master_key_id, key, is_complete, name FROM siwa.hash_key ORDER BY number",
      limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in
      wrapped.keys.append(
        StoreKeys.WrappedHashKey(
          number: try row.count(0) ?? 0, name: try row.value(4, as: String?.self).flatMap { HashKeyID($0) },
          masterKeyID: try row.value(1), key: try row.value(2)))
      wrapped.isComplete = try row.value(3)
    }
    return wrapped
  }

  /// The store's version, 0 where there is none. Throws where it is a later one than this program knows, or where the
  /// schema is not a store's.
  func storeVersion() async throws -> Int64 {
    let tables = try await query(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'siwa' ORDER BY tablename",
      limit: PostgreSQLStoreDatabase.limit
    ) { row throws(PostgreSQLError) in try row.value(0, as: String.self) }
    if tables.isEmpty { return 0 }
    guard tables.contains("migration"), tables.contains("hash_key") || tables.contains("store_key") else {
      throw AccountStoreError(.damaged, "the schema siwa of the database is something else's")
    }
    let version: Int64? = try await first("SELECT max(version) FROM siwa.migration") { row throws(PostgreSQLError) in
      try row.value(0)
    }
    guard let version else { throw AccountStoreError(.damaged, "it does not say of which version it is") }
    guard version <= PostgreSQLMigrations.version else {
      throw AccountStoreError(
        .newerVersion, "it is of version \(version), and this program knows \(PostgreSQLMigrations.version) at most")
    }
    return version
  }
}
