import AccountEvents
import EventLoop

/// What an operator does with a store in a file of SQLite's.
struct SQLiteStoreAdministration: AccountStoreAdministration {
  let place: String
  let key: MasterKey

  /// The store at `path`.
  init(_ path: String, _ key: MasterKey) { (place, self.key) = (path, key) }

  func begin() async throws(AccountStoreError) -> Bool {
    try await onThread { () throws(AccountStoreError) in try SQLiteStoreFile.begin(place, key) }
  }

  func migrate() async throws(AccountStoreError) -> StoreMigration {
    try await onThread { () throws(AccountStoreError) in
      let version = try SQLiteStoreFile.migrate(place, key)
      return StoreMigration(from: Int(version), to: Int(SQLiteMigrations.version))
    }
  }

  func verify(
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> StoreReport {
    try await onThread { () throws(AccountStoreError) in
      try SQLiteStoreFile(place, key).verify(progress)
    }
  }

  func rotateKey(
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> KeyRotation {
    try await onThread { () throws(AccountStoreError) in
      try SQLiteStoreFile(place, key).rotateKey(progress)
    }
  }

  func rotateHashKey(
    to key: HashKey?, progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> HashRotation {
    try await onThread { () throws(AccountStoreError) in
      try SQLiteHashRotation(SQLiteStoreFile(place, self.key)).run(to: key, progress)
    }
  }

  func prune(
    before time: Timestamp, eraser: ConsumerName, isRehearsal: Bool,
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> StorePruning {
    try await onThread { () throws(AccountStoreError) in
      let pruner = try SQLitePruner(SQLiteStoreFile(place, key), before: time, eraser: eraser)
      let found = try pruner.run(isRehearsal: true) { progress(.counting($0)) }
      return isRehearsal ? found : try pruner.run(isRehearsal: false) { progress(.pruning($0, of: found)) }
    }
  }

  func backUp(
    to path: String, progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(StoreBackupError) -> StoreReport {
    try await onThread { () throws(StoreBackupError) in
      let store: SQLiteStoreFile
      do throws(AccountStoreError) { store = try SQLiteStoreFile(place, key) } catch { throw .store(error) }
      return try SQLiteBackup(of: store, key, to: path).run(progress)
    }
  }

  func onThread<Value: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let thread = BlockingThread(named: "account-store")
    defer { thread.close() }
    return try await thread.run { Result { () throws(Failure) in try work() } }.get()
  }
}
