import AccountEvents
import EventLoop
import Glibc
import SQLite

/// The store's database, with a connection that writes. Its calls block: they are made on the store's thread.
final class SQLiteStoreFile {
  /// Several programs write: each waits so long for the others' transactions, which take a few milliseconds.
  static let busyTimeout = Duration.seconds(20)
  static let pageSize = 4096

  let database: Database
  let keys: StoreKeys
  let accounts: SQLiteAccounts
  let ledger: SQLiteLedger
  let erasures: SQLiteErasures
  private let path: String
  /// Whether the log may still hold pages with what was erased: by this process, or by one that was killed.
  private var remembersErased = true
  private var nextTruncation = MonotonicTime.now

  /// Opens the database at `path`, which must have this program's version, with the key that it was made with.
  init(_ path: String, _ master: MasterKey) throws(AccountStoreError) {
    self.path = path
    database = try Self.open(path)
    try Self.expectVersion(of: database)
    keys = try Self.readKeys(of: database, master)
    let database = database
    (accounts, ledger, erasures) = try AccountStoreError.translating { () throws(SQLiteError) in
      (try SQLiteAccounts(database), try SQLiteLedger(database), try SQLiteErasures(database))
    }
  }

  /// Judges and writes each settlement, and raises marks, in one transaction.
  func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp
  ) throws(AccountStoreError) -> Settled {
    try write { () throws(AccountStoreError) in
      let (facts, kept) = try AccountStoreError.translating { () throws(SQLiteError) in
        var facts: [EventFacts] = []
        var kept: [AccountHash: KeptAccount] = [:]
        facts.reserveCapacity(settlements.count)
        for settlement in settlements {
          let event = settlement.event
          facts.append(try ledger.facts(of: event, for: settlement.consumer))
          if settlement.erases { kept[event.hash] = try accounts.kept(of: event.hash) }
        }
        return (facts, kept)
      }
      let judged = try JudgedSettlements(settlements, facts, kept: kept, at: time, keys)
      try write(judged.accounts)
      if judged.hasErased { rememberErased() }
      return try AccountStoreError.translating { () throws(SQLiteError) in
        try ledger.write(judged, of: settlements, at: time)
        var fenced: [AnnouncedMark] = []
        for mark in marks where try !ledger.raise(mark) { fenced.append(mark) }
        return Settled(outcomes: judged.outcomes, fenced: fenced)
      }
    }
  }

  /// Adds a sign-in, and returns the tokens that are not kept.
  func recordSignIn(
    _ account: Account, _ hash: AccountHash, at time: Timestamp, _ tokens: [NewToken]
  ) throws(AccountStoreError) -> [NewToken] {
    try write { () throws(AccountStoreError) in
      let (facts, ended) = try AccountStoreError.translating { () throws(SQLiteError) in
        (try accounts.facts(of: hash), try accounts.endedAuthorizations(of: hash))
      }
      var changed = ChangedAccount(hash, facts)
      let over = try changed.signIn(account, at: time, tokens, ended, keys)
      try write([changed])
      return over
    }
  }

  /// The account's tokens, opened.
  func tokens(of hash: AccountHash) throws(AccountStoreError) -> [StoredToken] {
    let (facts, rows) = try AccountStoreError.translating { () throws(SQLiteError) in
      try database.snapshot { () throws(SQLiteError) in (try accounts.facts(of: hash), try accounts.tokens(of: hash)) }
    }
    guard let wrapped = facts.key, !rows.isEmpty else { return [] }
    let key = try keys.dataKey(of: hash, wrapped)
    var tokens: [StoredToken] = []
    for row in rows { tokens.append(try row.opened(of: hash, with: key)) }
    return tokens
  }

  /// Writes what has become of accounts.
  func write(_ changed: [ChangedAccount]) throws(AccountStoreError) {
    for var account in changed {
      let (tokens, relay) = (try account.sealedTokens(keys), try account.sealedRelay(keys))
      try AccountStoreError.translating { () throws(SQLiteError) in try accounts.write(account, tokens, relay) }
    }
  }

  // MARK: Transactions

  /// Runs `body` in a transaction that may change something.
  func write<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try database.transaction(translating: AccountStoreError.init(committing:), body)
  }

  /// The same with what only changes rows.
  func writeRows<Value>(_ body: () throws(SQLiteError) -> Value) throws(AccountStoreError) -> Value {
    try write { () throws(AccountStoreError) in try AccountStoreError.translating(body) }
  }

  /// Reads as of one moment.
  func snapshot<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try database.snapshot(translating: AccountStoreError.init(_:), body)
  }

  /// The same with what only reads rows.
  func readRows<Value>(_ body: () throws(SQLiteError) -> Value) throws(AccountStoreError) -> Value {
    try AccountStoreError.translating { () throws(SQLiteError) in try database.snapshot(body) }
  }

  // MARK: The file

  /// Whether it can be read, and the lock for writing be had.
  func check() throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in _ = try Self.readWrappedKeys(of: database) }
  }

  /// How large the file is, with its log.
  func size() throws(AccountStoreError) -> Int64 {
    var size: Int64 = 0
    for name in [path, path + "-wal"] {
      var status = stat()
      if unsafe stat(name, &status) == 0 {
        size += Int64(status.st_size)
      } else if errno != ENOENT {
        throw AccountStoreError(.unavailable, "\(name): \(SystemError.current)")
      }
    }
    return size
  }

  /// Something was erased: the log may hold it still.
  func rememberErased() { (remembersErased, nextTruncation) = (true, .now) }

  /// The log keeps pages as they were before an erasure until it is begun anew. Where a reader of this process is in the
  /// way, it is held off for a moment; where another process is, a later change or check tries again, at most once a second.
  func forgetErased(holdingOff readers: SQLiteThread<SQLiteRelayReader>?) {
    let now = MonotonicTime.now
    guard remembersErased, now >= nextTruncation else { return }
    nextTruncation = now + .seconds(1)
    remembersErased = !truncateLog()
    // What was in nobody's way is in the file by now: little is left to be done.
    if remembersErased, let readers { remembersErased = !readers.pause { truncateLog() } }
  }

  private func truncateLog() -> Bool {
    do throws(SQLiteError) {
      return try database.truncateLog()
    } catch {
      // What was asked for has happened all the same. What is wrong with the disk, the next change says.
      return false
    }
  }
}
