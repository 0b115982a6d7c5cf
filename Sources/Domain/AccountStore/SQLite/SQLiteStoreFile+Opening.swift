import AccountEvents
import EventLoop
import Glibc
import SQLite

extension SQLiteStoreFile {
  /// Throws where there is no file at `path`.
  static func expectFile(at path: String) throws(AccountStoreError) {
    guard unsafe access(path, F_OK) == 0 else {
      let cause = SystemError.current
      throw cause.code == ENOENT
        ? .none(at: "at \(path)")
        : AccountStoreError(.unavailable, "\(path): \(cause)")
    }
  }

  /// Opens the file at `path`, which must be there.
  static func open(_ path: String) throws(AccountStoreError) -> Database {
    try expectFile(at: path)
    let database: Database
    do throws(SQLiteError) {
      database = try Database(path, .readWrite(pageSize: pageSize), busyTimeout: busyTimeout)
    } catch {
      let failure = AccountStoreError(error)
      throw AccountStoreError(failure.code, "\(path): \(failure.detail)")
    }
    return try AccountStoreError.translating { () throws(SQLiteError) in
      // 32 MiB, and twice that for the log. Accounts come in no order: a page in memory is not read again, and one that
      // changes often goes from the log into the file once.
      try database.execute(
        "PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 16384; PRAGMA journal_size_limit = 67108864")
      return database
    }
  }

  /// Throws unless the database is of the version that this program knows.
  static func expectVersion(of database: Database) throws(AccountStoreError) {
    // As of one moment: `siwa store begin` may make the store meanwhile.
    let found = try database.snapshot(translating: AccountStoreError.init(_:)) { () throws(AccountStoreError) in
      try knownVersion(of: database)
    }
    guard found > 0 else { throw .none(at: "in the file, which is empty") }
    guard found == SQLiteMigrations.version else {
      throw AccountStoreError(
        .notMigrated,
        "it is of version \(found), and this program needs \(SQLiteMigrations.version); run `siwa store migrate`")
    }
  }

  /// The version of the database; throws where it is a later one, or no store.
  static func knownVersion(of database: Database) throws(AccountStoreError) -> Int64 {
    let found = try AccountStoreError.translating { () throws(SQLiteError) in
      try SQLiteMigrations.version(of: database)
    }
    guard let found else { throw AccountStoreError(.damaged, "the file is a database of something else") }
    guard found <= SQLiteMigrations.version else {
      throw AccountStoreError(
        .newerVersion, "it is of version \(found), and this program knows \(SQLiteMigrations.version) at most")
    }
    return found
  }

  /// Makes the store at `path`, all of it in one transaction; false where there is one.
  static func begin(_ path: String, _ master: MasterKey) throws(AccountStoreError) -> Bool {
    try change(path) { database, version throws(AccountStoreError) in
      guard version == 0 else { return false }
      try bring(database, from: 0)
      try add(try StoreKeys.make(for: master), isComplete: true, to: database)
      return true
    }
  }

  /// Brings the store at `path` to this program's version, all of it in one transaction; returns the version that it had.
  static func migrate(_ path: String, _ master: MasterKey) throws(AccountStoreError) -> Int64 {
    try expectFile(at: path)
    return try change(path) { database, version throws(AccountStoreError) in
      guard version > 0 else { throw .none(at: "in \(path), which is empty") }
      if version < SQLiteMigrations.withoutAnnouncements { try expectNoAnnouncements(in: database) }
      try bring(database, from: version)
      // Another master key would be told of only when it is too late.
      _ = try SQLiteStoreKeys.read(from: database, master)
      return version
    }
  }

  private static func change<Value>(
    _ path: String, _ body: (_ database: Database, _ version: Int64) throws(AccountStoreError) -> Value
  ) throws(AccountStoreError) -> Value {
    let database = try AccountStoreError.translating { () throws(SQLiteError) in
      try Database(path, .readWrite(pageSize: pageSize), busyTimeout: busyTimeout)
    }
    return try database.transaction(translating: AccountStoreError.init(committing:)) {
      () throws(AccountStoreError) in
      try body(database, try knownVersion(of: database))
    }
  }

  private static func bring(_ database: Database, from version: Int64) throws(AccountStoreError) {
    try AccountStoreError.translating { () throws(SQLiteError) in
      for step in SQLiteMigrations.steps[Int(version)...] { try database.execute(step) }
    }
  }

  /// Adds a hashing key.
  static func add(
    _ key: StoreKeys.WrappedHashKey, isComplete: Bool, to database: Database
  ) throws(AccountStoreError) {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try database.prepare(
        "INSERT INTO hash_key (number, name, master_key_id, key, is_complete) VALUES (?, ?, ?, ?, ?)"
      )
      .run(
        Int64(key.number), key.name?.description, key.masterKeyID, key.key, isComplete ? 1 as Int64 : 0)
    }
  }

  /// Throws where something waits to be announced, which this version would forget.
  private static func expectNoAnnouncements(in database: Database) throws(AccountStoreError) {
    let waiting = try AccountStoreError.translating { () throws(SQLiteError) in
      try database.prepare("SELECT count(*) FROM announcement").first { row throws(SQLiteError) in try row.count(0) }
    }
    if let waiting = waiting ?? nil, waiting > 0 { throw .announcementsWait(waiting) }
  }
}
