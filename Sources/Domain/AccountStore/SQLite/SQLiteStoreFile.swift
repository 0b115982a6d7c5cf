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
  let accounts: SQLiteAccounts
  let ledger: SQLiteLedger
  let erasures: SQLiteErasures
  let signIns: SQLiteSignIns
  let profiles: SQLiteProfiles
  let deletions: SQLiteDeletions
  let outbox: SQLiteOutbox
  let validation: SQLiteValidation
  let transfers: SQLiteTransfers
  let arrivals: SQLiteArrivals
  let hashKeys: SQLiteStoreKeys
  private let mover: SQLiteMover
  private let path: String
  /// Where the log of its pages is: beside the file itself, where `path` is a link.
  private let logPath: String
  /// Which files these two are: their devices and the numbers of their nodes.
  private let nodes: [UInt64]
  /// Whether the log may still hold pages with what was erased: by this process, or by one that was killed.
  private var remembersErased = true
  private var nextTruncation = MonotonicTime.now
  /// Whether the transaction that is under way is one that several changes share.
  private var isSharing = false

  /// Opens the database at `path`, which must have this program's version, with the key that it was made with.
  init(_ path: String, _ master: MasterKey) throws(AccountStoreError) {
    self.path = path
    database = try Self.open(path)
    logPath = "\(Self.resolved(path))-wal"
    try Self.expectVersion(of: database)
    hashKeys = try SQLiteStoreKeys(database, master)
    // Behind what has read something: the log is there.
    nodes = try Self.node(of: path) + Self.node(of: logPath)
    let database = database
    (validation, transfers, arrivals, profiles) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try SQLiteValidation(database), try SQLiteTransfers(database), try SQLiteArrivals(database),
        try SQLiteProfiles(database)
      )
    }
    (accounts, ledger, erasures, signIns, deletions, outbox, mover) = try AccountStoreError.translating {
      () throws(SQLiteError) in
      (
        try SQLiteAccounts(database), try SQLiteLedger(database), try SQLiteErasures(database),
        try SQLiteSignIns(database), try SQLiteDeletions(database), try SQLiteOutbox(database),
        try SQLiteMover(database)
      )
    }
  }

  /// The keys that hold in the transaction that is under way.
  var keys: StoreKeys { hashKeys.value }

  /// The keys, for the other threads of this process.
  var current: CurrentKeys { hashKeys.current }

  /// Judges and writes each settlement, and raises marks, in one transaction.
  func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp
  ) throws(AccountStoreError) -> Settled {
    try write { () throws(AccountStoreError) in
      let settlements = keys.current(settlements)
      try move(settlements.lazy.map(\.event.account))
      let relatives = try relatives(of: settlements)
      let linked = try LinkedSettlements(settlements, relatives, keys)
      let (facts, kept) = try AccountStoreError.translating { () throws(SQLiteError) in
        let facts = try ledger.facts(of: linked.all.lazy.map { ($0.event, $0.consumer) })
        var kept: [AccountHash: KeptAccount] = [:]
        for settlement in linked.all where settlement.erases {
          let hash = settlement.event.hash
          kept[hash] = try accounts.kept(of: hash)
        }
        return (facts, kept)
      }
      let judged = try JudgedSettlements(linked, facts, kept: kept, relatives, at: time, keys)
      try write(judged.accounts)
      if judged.hasErased { rememberErased() }
      return try AccountStoreError.translating { () throws(SQLiteError) in
        try ledger.write(judged, of: linked.all, at: time, generation: keys.generation)
        for settlement in settlements {
          for step in settlement.steps {
            try erasures.record(step, of: settlement.event, generation: keys.generation)
          }
        }
        for event in judged.events { try outbox.add(event) }
        var fenced: [AnnouncedMark] = []
        for mark in marks where try !ledger.raise(mark) { fenced.append(mark) }
        return Settled(outcomes: judged.outcomes, fenced: fenced)
      }
    }
  }

  /// The account's tokens, opened.
  func tokens(of account: Account) throws(AccountStoreError) -> [StoredToken] {
    let (hash, facts, rows) = try read(of: CollectionOfOne(account)) { () throws(SQLiteError) in
      let hash = keys.hash(of: account)
      return (hash, try accounts.facts(of: hash), try accounts.tokens(of: hash))
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
      try AccountStoreError.translating { () throws(SQLiteError) in
        try accounts.write(account, tokens, relay, generation: keys.generation)
      }
    }
    try removeTransfers(of: changed)
  }

  // MARK: Transactions

  /// Runs `body` in a transaction that may change something, or as a part of the one that several changes share.
  func write<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    if isSharing { return try database.savepoint(translating: AccountStoreError.init(_:), body) }
    try expectOwnFile()
    return try database.transaction(translating: AccountStoreError.init(committing:)) { () throws(AccountStoreError) in
      try refreshKeys()
      return try body()
    }
  }

  /// Writes one page of many, and leaves the file to the other programs for as long as that took: they wait for the lock by
  /// asking for it now and then, and of pages without a break they would hardly ever find the end of one.
  func writePage<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    var begin = MonotonicTime.now
    let value = try write { () throws(AccountStoreError) in
      begin = .now
      return try body()
    }
    let pause = (MonotonicTime.now - begin).components
    var time = timespec(tv_sec: Int(pause.seconds), tv_nsec: Int(pause.attoseconds / 1_000_000_000))
    // Cut short by a signal it is shorter, and nothing more.
    unsafe nanosleep(&time, nil)
    return value
  }

  /// Throws where other files have taken the place of those that are open, as a backup does that was restored too early:
  /// what was written would be lost, and is said to be done. Who copies over the file removes its log.
  private func expectOwnFile() throws(AccountStoreError) {
    guard try Self.node(of: path) + Self.node(of: logPath) == nodes else {
      throw AccountStoreError(
        .unavailable, "\(path): another file is in its place: stop all programs, and start them anew")
    }
  }

  private static func resolved(_ path: String) -> String {
    guard let resolved = unsafe realpath(path, nil) else { return path }
    defer { unsafe free(resolved) }
    return unsafe String(cString: resolved)
  }

  private static func node(of path: String) throws(AccountStoreError) -> [UInt64] {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else {
      throw AccountStoreError(.unavailable, "\(path): \(SystemError.current)")
    }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }

  /// The same with what only changes rows.
  func writeRows<Value>(_ body: () throws(SQLiteError) -> Value) throws(AccountStoreError) -> Value {
    try write { () throws(AccountStoreError) in try AccountStoreError.translating(body) }
  }

  /// Reads as of one moment.
  func snapshot<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try database.snapshot(translating: AccountStoreError.init(_:)) { () throws(AccountStoreError) in
      try refreshKeys()
      return try body()
    }
  }

  /// The same with what only reads rows.
  func readRows<Value>(_ body: () throws(SQLiteError) -> Value) throws(AccountStoreError) -> Value {
    try snapshot { () throws(AccountStoreError) in try AccountStoreError.translating(body) }
  }

  /// Reads what is known of these accounts, as of one moment: all of it stands under their newest hashes.
  func read<Value>(
    of some: some Collection<Account>, _ body: () throws(SQLiteError) -> Value
  ) throws(AccountStoreError) -> Value {
    let value = try snapshot { () throws(AccountStoreError) -> Value? in
      keys.state.isMoving ? nil : try AccountStoreError.translating(body)
    }
    if let value { return value }
    return try write { () throws(AccountStoreError) in
      try move(some)
      return try AccountStoreError.translating(body)
    }
  }

  /// Moves what stands under the former hashes of these accounts, while a rotation of the hashing key is under way: whoever
  /// comes to an account does not wait for its turn.
  func move(_ accounts: some Collection<Account>) throws(AccountStoreError) {
    guard keys.state.isMoving else { return }
    let hashing = keys.hashing
    _ = try move(Set(accounts.lazy.map { hashing.move(of: $0) }))
  }

  /// Moves what stands under hashes, and returns how many rows that were.
  func move(_ moves: some Collection<HashMove>) throws(AccountStoreError) -> Int { try mover.move(moves, keys) }

  /// Runs `body` in a transaction in which each `write` is a part of its own.
  func share(_ body: () throws(AccountStoreError) -> Void) throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in
      isSharing = true
      defer { isSharing = false }
      try body()
    }
  }

  private func refreshKeys() throws(AccountStoreError) {
    // What was moved has left its hashes in the log, too.
    if try hashKeys.refresh() { rememberErased() }
  }

  // MARK: The file

  /// Whether it can be read, and the lock for writing be had.
  func check() throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in _ = try SQLiteStoreKeys.readWrapped(from: database) }
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
  func forgetErased(holdingOff readers: SQLiteThread<SQLiteReader>?) {
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
