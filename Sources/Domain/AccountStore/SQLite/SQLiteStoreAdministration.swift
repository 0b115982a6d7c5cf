import AccountEvents
import EventLoop
import Glibc
import SQLite

/// What an operator does with a store in a file of SQLite's.
struct SQLiteStoreAdministration: AccountStoreAdministration {
  let place: String
  let key: MasterKey

  /// The store at `path`.
  init(_ path: String, _ key: MasterKey) { (place, self.key) = (path, key) }

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
  ) async throws(AccountStoreError) -> StoreReport {
    try await onThread { () throws(AccountStoreError) in
      let store = try SQLiteStoreFile(place, key)
      guard unsafe access(path, F_OK) != 0 else { throw AccountStoreError(.failed, "\(path) is there already") }
      // What a copy that was broken off has left.
      let partial = path + ".partial"
      for end in ["", "-wal", "-shm"] { unsafe unlink(partial + end) }
      try AccountStoreError.translating { () throws(SQLiteError) in
        try store.database.copy(to: partial) { progress(StoreProgress(.copying, done: $0, total: $1)) }
      }
      // Opened as any store; when it is closed, all of it is in the one file.
      let report = try SQLiteStoreFile(partial, key).verify(progress)
      guard report.findings.isEmpty else {
        throw AccountStoreError(.damaged, "the copy \(partial) is damaged: \(report.findings[0])")
      }
      // Unlike rename, it replaces nothing.
      guard unsafe link(partial, path) == 0, unsafe unlink(partial) == 0 else {
        throw AccountStoreError(.failed, "\(path): \(SystemError.current)")
      }
      try AccountStoreError.translating { () throws(SQLiteError) in try Database.syncDirectory(of: path) }
      return report
    }
  }

  func onThread<Value: Sendable>(
    _ work: @escaping @Sendable () throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    let thread = BlockingThread(named: "account-store")
    defer { thread.close() }
    return try await thread.run { Result { () throws(AccountStoreError) in try work() } }.get()
  }
}
