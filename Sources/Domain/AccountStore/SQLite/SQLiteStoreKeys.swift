import AccountEvents
import SQLite

/// The keys that hold in a database, for one connection to it. Another process may replace the hashing key at any time; so
/// every transaction asks first, and what it is told holds until its end.
final class SQLiteStoreKeys {
  private let database: Database
  private let state: Statement
  /// The keys, as the last transaction found them.
  private(set) var value: StoreKeys
  /// The same, for the other threads of this process.
  let current: CurrentKeys

  /// The keys of the store in `database`; `current` is what another connection of this process tells others already.
  init(_ database: Database, _ master: MasterKey, _ current: CurrentKeys? = nil) throws(AccountStoreError) {
    self.database = database
    state = try AccountStoreError.translating { () throws(SQLiteError) in
      try database.prepare("SELECT number, is_complete, name, master_key_id FROM hash_key ORDER BY number DESC LIMIT 1")
    }
    value = try Self.read(from: database, master)
    self.current = current ?? CurrentKeys(value)
  }

  /// Finds out, within a transaction, which keys hold; says whether others did before.
  func refresh() throws(AccountStoreError) -> Bool {
    let found = try AccountStoreError.translating { () throws(SQLiteError) in
      try state.first { row throws(SQLiteError) in
        HashingState(
          generation: try row.count(0) ?? 0, isMoving: try row.value(1, as: Int64.self) == 0,
          newest: try row.value(2, as: String?.self).flatMap { HashKeyID($0) }, masterKeyID: try row.value(3))
      }
    }
    if found == value.state { return false }
    value = try Self.read(from: database, value.master)
    current.advance(to: value)
    return true
  }

  /// The keys of the store in `database`.
  static func read(from database: Database, _ master: MasterKey) throws(AccountStoreError) -> StoreKeys {
    try StoreKeys(try readWrapped(from: database), with: master)
  }

  /// The same, as they are kept.
  static func readWrapped(from database: Database) throws(AccountStoreError) -> StoreKeys.Wrapped {
    try AccountStoreError.translating { () throws(SQLiteError) in
      var wrapped = StoreKeys.Wrapped()
      try database.prepare("SELECT number, master_key_id, key, is_complete, name FROM hash_key ORDER BY number").forEach
      {
        row throws(SQLiteError) in
        wrapped.keys.append(
          StoreKeys.WrappedHashKey(
            number: try row.count(0) ?? 0, name: try row.value(4, as: String?.self).flatMap { HashKeyID($0) },
            masterKeyID: try row.value(1), key: try row.value(2)))
        wrapped.isComplete = try row.value(3, as: Int64.self) == 1
      }
      return wrapped
    }
  }
}
