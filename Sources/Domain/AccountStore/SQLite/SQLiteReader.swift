import SQLite

/// Answers mailers and applications, with a connection that only reads: it sees what was committed, and waits for no
/// writer.
final class SQLiteReader {
  let relays: SQLiteRelayReader
  let profiles: SQLiteProfiles
  let arrivals: SQLiteArrivals
  let transfers: SQLiteTransfers
  private let database: Database
  private let hashKeys: SQLiteStoreKeys

  /// Opens the store at `path`.
  init(_ path: String, _ master: MasterKey, _ current: CurrentKeys) throws(AccountStoreError) {
    let database = try AccountStoreError.translating { () throws(SQLiteError) in
      try Database(path, .readOnly, busyTimeout: SQLiteStoreFile.busyTimeout)
    }
    let hashKeys = try SQLiteStoreKeys(database, master, current)
    (self.database, self.hashKeys) = (database, hashKeys)
    (relays, profiles, arrivals, transfers) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try SQLiteRelayReader(database), try SQLiteProfiles(database), try SQLiteArrivals(database),
        try SQLiteTransfers(database)
      )
    }
  }

  /// The keys that hold in the snapshot that is under way.
  var keys: StoreKeys { hashKeys.value }

  /// Runs `body`, in which nothing is waited for, be it a lock or the disk: what would have to be fails. Nil where that is not
  /// to be had.
  func withoutWaiting<Value>(_ body: () -> Value) -> Value? { database.withoutWaiting(body) }

  /// Reads as of one moment.
  func snapshot<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try database.snapshot(translating: AccountStoreError.init(_:)) { () throws(AccountStoreError) in
      _ = try hashKeys.refresh()
      return try body()
    }
  }
}
