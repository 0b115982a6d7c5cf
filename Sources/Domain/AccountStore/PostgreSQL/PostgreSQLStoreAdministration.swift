import AccountEvents
import EventLoop
import PostgreSQL

/// What an operator does with a store in a database of PostgreSQL's.
struct PostgreSQLStoreAdministration: AccountStoreAdministration {
  /// A step may rewrite a large table.
  private static let statementTimeout = Duration.seconds(24 * 60 * 60)

  let place: String
  private let connectionInfo: String
  let key: MasterKey

  /// The store in the database that `connectionInfo` names.
  init(_ connectionInfo: String, _ key: MasterKey) {
    (self.connectionInfo, self.key) = (connectionInfo, key)
    place = "PostgreSQL " + (PostgreSQLConfiguration.place(in: connectionInfo) ?? "")
  }

  func begin() async throws(AccountStoreError) -> Bool {
    try await change { connection, version in
      guard version == 0 else { return false }
      if try await connection.execute("SELECT FROM pg_namespace WHERE nspname = 'siwa'") == 0 {
        try await connection.execute("CREATE SCHEMA siwa")
      }
      try await connection.bring(from: 0)
      try await connection.add(try StoreKeys.make(for: key), isComplete: true)
      return true
    }
  }

  func migrate() async throws(AccountStoreError) -> StoreMigration {
    let version = try await change { connection, version in
      guard version > 0 else { throw AccountStoreError.none(at: "in the database") }
      if version < PostgreSQLMigrations.withoutAnnouncements { try await connection.expectNoAnnouncements() }
      try await connection.bring(from: version)
      // Another master key would be told of only when it is too late.
      _ = try await connection.readKeys(with: key)
      return version
    }
    return StoreMigration(from: Int(version), to: Int(PostgreSQLMigrations.version))
  }

  private func change<Value: Sendable>(
    _ body: @escaping @Loop @Sendable (_ connection: Connection, _ version: Int64) async throws -> Value
  ) async throws(AccountStoreError) -> Value {
    try await with { database throws(AccountStoreError) in
      try await database.write { connection in
        // Until the end of the transaction, for all who make this store or migrate it.
        try await connection.execute("SELECT pg_advisory_xact_lock(hashtext('siwa store migrate'))")
        return try await body(connection, try await connection.storeVersion())
      }
    }
  }

  func verify(
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> StoreReport {
    try await with { database throws(AccountStoreError) in
      try await database.snapshot { connection in
        let keys = try await connection.openKeys(with: key)
        return try await PostgreSQLVerification(keys, connection).run(progress)
      }
    }
  }

  func rotateKey(
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> KeyRotation {
    try await with { database throws(AccountStoreError) in
      try await database.rotateKey(to: key, progress)
    }
  }

  func rotateHashKey(
    to key: HashKey?, progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> HashRotation {
    try await with { database throws(AccountStoreError) in
      let keys = try await database.read { connection in try await connection.openKeys(with: self.key) }
      return try await PostgreSQLHashRotation(PostgreSQLKeyedDatabase(database, keys)).run(to: key, progress)
    }
  }

  func prune(
    before time: Timestamp, eraser: ConsumerName, isRehearsal: Bool,
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> StorePruning {
    try await with { database throws(AccountStoreError) in
      _ = try await database.read { connection in try await connection.openKeys(with: key) }
      let pruner = PostgreSQLPruner(database: database, time: time, eraser: eraser)
      let found = try await pruner.run(isRehearsal: true) { progress(.counting($0)) }
      if isRehearsal { return found }
      return try await pruner.run(isRehearsal: false) { progress(.pruning($0, of: found)) }
    }
  }

  func backUp(
    to path: String, progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(StoreBackupError) -> StoreReport {
    throw .store(
      AccountStoreError(
        .failed,
        "backups of PostgreSQL are made with its own means, such as `pg_dump --schema=siwa --format=custom`; "
          + "`siwa store integrity` verifies a database into which one was restored"))
  }

  func with<Value: Sendable>(
    _ body: @Loop (PostgreSQLStoreDatabase) async throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    let database = try await PostgreSQLStoreDatabase(
      connectionInfo, connections: 1, statementTimeout: Self.statementTimeout)
    do throws(AccountStoreError) {
      let value = try await body(database)
      await database.close()
      return value
    } catch {
      await database.close()
      throw error
    }
  }
}

extension Connection {
  /// Brings the schema from a version to this program's.
  fileprivate func bring(from version: Int64) async throws {
    for (index, step) in PostgreSQLMigrations.steps.enumerated().dropFirst(Int(version)) {
      try await run(script: step)
      try await execute("INSERT INTO siwa.migration (version) VALUES ($1)", Int64(index + 1))
    }
  }

  /// Throws where something waits to be announced, which this version would forget. Nobody adds anything from here on.
  fileprivate func expectNoAnnouncements() async throws {
    try await execute("LOCK siwa.announcement IN ACCESS EXCLUSIVE MODE")
    let waiting = try await first("SELECT count(*) FROM siwa.announcement") { row throws(PostgreSQLError) in
      try row.count(0)
    }
    if let waiting = waiting ?? nil, waiting > 0 { throw AccountStoreError.announcementsWait(waiting) }
  }
}
