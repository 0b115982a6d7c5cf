import EventLoop
import Synchronization

/// The store's thread, and the file that is used on it alone.
final class SQLiteStoreKeeper: Sendable {
  private let thread = BlockingThread(named: "account-store")
  /// The lock is never waited for: one thread takes it.
  private let file = Mutex<SQLiteStoreFile?>(nil)

  /// Opens the file, and returns the keys in it.
  func open(_ path: String, _ master: MasterKey) async throws(AccountStoreError) -> StoreKeys {
    let result = await thread.run { [self] in
      Result { () throws(AccountStoreError) in
        try file.withLock { file throws(AccountStoreError) in
          let opened = try SQLiteStoreFile(path, master)
          file = opened
          return opened.keys
        }
      }
    }
    return try result.get()
  }

  /// Runs `work` with the file, unless it was closed.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (SQLiteStoreFile) throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    let result = await thread.run { [self] in
      file.withLock { file in
        Result { () throws(AccountStoreError) in
          guard let file else { throw AccountStoreError(.closed, "it was closed") }
          return try work(file)
        }
      }
    }
    return try result.get()
  }

  /// Closes the file. The thread ends with the keeper.
  func close() async { await thread.run { [self] in file.withLock { $0 = nil } } }
}
