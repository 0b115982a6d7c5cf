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
        ? AccountStoreError(.notMigrated, "there is none at \(path); `siwa store migrate` makes it")
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
    let found = try knownVersion(of: database)
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

  /// Makes the database at `path` or brings it to this program's version; returns the version that it had. All of it in
  /// one transaction.
  static func migrate(_ path: String, _ master: MasterKey) throws(AccountStoreError) -> Int64 {
    let database = try AccountStoreError.translating { () throws(SQLiteError) in
      try Database(path, .readWrite(pageSize: pageSize), busyTimeout: busyTimeout)
    }
    return try database.transaction(translating: AccountStoreError.init(committing:)) {
      () throws(AccountStoreError) in
      let version = try knownVersion(of: database)
      if 1..<SQLiteMigrations.withoutAnnouncements ~= version { try expectNoAnnouncements(in: database) }
      try AccountStoreError.translating { () throws(SQLiteError) in
        for step in SQLiteMigrations.steps[Int(version)...] { try database.execute(step) }
      }
      if version == 0 { try add(try StoreKeys.make(for: master), isComplete: true, to: database) }
      // Another master key would be told of only when it is too late.
      _ = try SQLiteStoreKeys.read(from: database, master)
      return version
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
