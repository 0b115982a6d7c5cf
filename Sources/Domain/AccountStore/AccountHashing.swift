package import AccountEvents
import Configuration
import EventLoop
import SQLite

/// The keyed hash of a store, and nothing else of it: for a program that names accounts as outcomes do. It is made with the
/// newest hashing key of when the store was asked.
package struct AccountHashing: Sendable {
  private let keys: StoreKeys

  fileprivate init(_ keys: StoreKeys) { self.keys = keys }

  /// The hash that stands for the account.
  package func hash(of account: Account) -> AccountHash { keys.hash(of: account) }
}

extension StoreSettings {
  /// The keyed hash of the store, which is read once and not written. Throws `.notMigrated` where there is no store of this
  /// version, and `.wrongMasterKey` where the key is not the one that it was made with.
  package func accountHashing() async throws(AccountStoreError) -> AccountHashing {
    let master = try masterKey()
    switch database {
    case .sqlite(let path):
      let thread = BlockingThread(named: "account-hashing")
      defer { thread.close() }
      let keys = await thread.run {
        Result { () throws(AccountStoreError) in try SQLiteStoreFile.keys(of: path, master) }
      }
      return AccountHashing(try keys.get())
    case .postgresql(let connectionInfo, _):
      let database = try await PostgreSQLStoreDatabase(
        connectionInfo.revealed, connections: 1, statementTimeout: .seconds(30))
      let keys: Result<StoreKeys, AccountStoreError>
      do throws(AccountStoreError) {
        keys = .success(try await database.read { connection in try await connection.openKeys(with: master) })
      } catch {
        keys = .failure(error)
      }
      await database.close()
      return AccountHashing(try keys.get())
    }
  }
}

extension SQLiteStoreFile {
  /// The keys of the store at `path`, read without writing there.
  fileprivate static func keys(of path: String, _ master: MasterKey) throws(AccountStoreError) -> StoreKeys {
    try expectFile(at: path)
    let database = try AccountStoreError.translating { () throws(SQLiteError) in
      try Database(path, .readOnly, busyTimeout: busyTimeout)
    }
    try expectVersion(of: database)
    return try SQLiteStoreKeys.read(from: database, master)
  }
}
