import CSQLite
import EventLoop

/// A connection to a database in a file. Its calls block, and belong on a thread of their own (`BlockingThread`).
///
/// What is committed survives the process' death at any moment, and a power failure too: the file is in WAL mode with
/// `synchronous=FULL`, so a commit returns once its pages are synced. What is deleted is overwritten. Our own schema is not
/// trusted beyond what it has to be. Statements are fixed texts, which the type `StaticString` sees to, or an operator's
/// own; in both a value reaches them by being bound.
@safe public final class Database {
  /// What a connection is for.
  public enum Access: Sendable, Equatable {
    /// Looks only. The file must be there.
    case readOnly
    /// Looks only, at a file that nobody writes meanwhile and that has no log. It needs no room on the disk, not even for
    /// the memory that the others share.
    case unchanging
    /// Reads and writes. Where there is no file, one is made that only this user can read, with pages of so many bytes:
    /// a power of two from 512 to 65,536.
    case readWrite(pageSize: Int)
    /// Reads and writes somebody else's database. The file must be there, and keeps its form: its pages, its journal. Its
    /// schema means what it means in the sqlite3 shell: SQLite's own defaults hold for triggers, views and quotation
    /// marks, and foreign keys are enforced only where the caller says so. A statement that runs for longer than
    /// `statementTimeout` fails with `.statementTimeout`.
    case foreign(foreignKeys: Bool, statementTimeout: Duration)
  }

  /// How large the log of pages that are not yet in the file becomes, as long as no reader keeps it from being reused.
  public static let logSize = 4 << 20

  let handle: OpaquePointer
  /// How long a statement may run; nil where nothing limits it.
  private let statementTimeout: Duration?
  /// When the statement that runs has run for long enough.
  private var statementEnd = MonotonicTime.distantFuture
  /// What transactions begin and end with, where it is compiled. They run for each group of events, and each time somebody
  /// asks; to compile one takes longer than to run it.
  private var steps = unsafe [OpaquePointer?](repeating: nil, count: Step.allCases.count)

  /// Opens the database at `path`. Another connection's lock is waited for, for as long as `busyTimeout`.
  ///
  /// It is closed with the last reference to it and its statements.
  public init(_ path: String, _ access: Access, busyTimeout: Duration) throws(SQLiteError) {
    _ = Self.withoutStatistics
    _ = FileSystem.isInUse
    let file = DatabaseFile(path)
    let flags: Int32
    var statementTimeout: Duration?
    switch access {
    case .readOnly: flags = SQLITE_OPEN_READONLY
    case .unchanging: flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
    case .foreign(_, let timeout):
      flags = SQLITE_OPEN_READWRITE
      statementTimeout = timeout
    case .readWrite:
      flags = SQLITE_OPEN_READWRITE
      try file.makeWhereMissing()
    }
    var handle: OpaquePointer?
    // Without a mutex of its own: the type is not Sendable, so it is used by one thread at a time.
    let name = access == .unchanging ? file.unchangingAddress : file.path
    let result = unsafe sqlite3_open_v2(
      name, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE, nil)
    guard let handle = unsafe handle else { throw unsafe SQLiteError(result, of: nil) }
    unsafe self.handle = handle
    self.statementTimeout = statementTimeout
    guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: handle) }
    try configure(access, busyTimeout)
    // The directory's entry of the log: an earlier process may have been killed before it was synced.
    if case .readWrite = access { try file.syncDirectory() }
  }

  deinit {
    for step in Step.allCases { unsafe sqlite3_finalize(steps[step.rawValue]) }
    // With the last statement, where there still are some; none of them can be used any more.
    unsafe sqlite3_close_v2(handle)
  }

  /// Runs statements that need no values and return no rows.
  public func execute(_ sql: StaticString) throws(SQLiteError) { try execute(text: sql.description) }

  /// Compiles a statement, for its owner to keep.
  public func prepare(_ sql: StaticString) throws(SQLiteError) -> Statement { try Statement(sql, in: self) }

  /// Compiles a statement that an operator wrote, for its owner to keep. Each run's values belong to the parameters of
  /// these names (`$1`), in their order; the statement need not use all of them.
  ///
  /// Throws where the text is not exactly one statement that fits the schema, or has another parameter. What stands in
  /// double quotes is a name: SQLite would take one that is not there, as of a column that was renamed, for a text, and the
  /// statement would find nobody. In somebody else's database that holds for views, too, but not for triggers.
  public func prepare(unescaped sql: String, parameters: [String]) throws(SQLiteError) -> Statement {
    try expectNames(unescaped: sql, parameters: parameters)
    return try Statement(unescaped: sql, parameters: parameters, in: self)
  }

  /// Throws where something in the statement's double quotes is no name. In a transaction that holds until its end: outside,
  /// another connection may change the schema, and SQLite compiles a statement anew then, with such texts.
  public func expectNames(unescaped sql: String, parameters: [String]) throws(SQLiteError) {
    // What another connection has changed is seen when something is read.
    let _: Int64? = try prepare("SELECT 1 FROM sqlite_schema LIMIT 1").first { row throws(SQLiteError) in
      try row.value(0)
    }
    // Triggers may have texts in double quotes.
    do throws(SQLiteError) {
      try compile(sql, parameters, without: [SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_ENABLE_TRIGGER])
    } catch {
      // A view is written to by its trigger, whose texts are its own business.
      guard error.detail.hasSuffix("because it is a view") else { throw error }
      do throws(SQLiteError) {
        try compile(sql, parameters, without: [SQLITE_DBCONFIG_DQS_DML])
      } catch {
        if error.place != nil { throw error }
      }
    }
  }

  private func compile(_ sql: String, _ parameters: [String], without options: [Int32]) throws(SQLiteError) {
    let before = options.map { option in unsafe (option, csqlite_configured(handle, option)) }
    defer { for (option, value) in before { _ = unsafe csqlite_configure(handle, option, value) } }
    for option in options {
      let result = unsafe csqlite_configure(handle, option, 0)
      guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: handle) }
    }
    _ = try Statement(unescaped: sql, parameters: parameters, in: self)
  }

  /// Runs `body` in a transaction that may write, and commits it. Whatever is thrown, by `body` or by the commit, nothing
  /// of it has happened. One case is in doubt: where the commit failed because the log could not be synced, its pages may
  /// have reached the disk, and a process that recovers the log after a crash may find them.
  public func transaction<Value>(_ body: () throws(SQLiteError) -> Value) throws(SQLiteError) -> Value {
    try transaction(.writing, translating: { $0 }, noting: Self.note, body)
  }

  /// The same for a body with errors of its own: `translate` says what the database's mean among them. Where it could
  /// not be rolled back, that is what is thrown.
  public func transaction<Value, Failure: Error>(
    translating translate: (SQLiteError) -> Failure, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try transaction(.writing, translating: translate, noting: { $0 = translate($1) }, body)
  }

  /// Whether a transaction is under way. After some failures, such as a full disk, SQLite undoes all of it by itself.
  public var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

  /// Runs `body` as a part of the transaction that is under way. Whatever it throws, nothing of it has happened; the rest
  /// of the transaction stands as long as `isInTransaction` says so.
  public func savepoint<Value, Failure: Error>(
    translating translate: (SQLiteError) -> Failure, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    precondition(isInTransaction, "a part of no transaction")
    return try transaction(.part, translating: translate, noting: { $0 = translate($1) }, body)
  }

  /// Runs `body` in a transaction in which everything is seen as of one moment.
  public func snapshot<Value>(_ body: () throws(SQLiteError) -> Value) throws(SQLiteError) -> Value {
    try transaction(.reading, translating: { $0 }, noting: Self.note, body)
  }

  /// The same for a body with errors of its own.
  public func snapshot<Value, Failure: Error>(
    translating translate: (SQLiteError) -> Failure, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try transaction(.reading, translating: translate, noting: { $0 = translate($1) }, body)
  }

  /// How many rows the last INSERT, UPDATE or DELETE that ended has inserted, changed or deleted. Other statements leave
  /// the number as it was.
  public var changes: Int { Int(unsafe sqlite3_changes64(handle)) }

  /// Reads the whole file and throws `.corrupt` with the first finding where it is damaged. Indices are not compared
  /// with their tables.
  public func check() throws(SQLiteError) {
    let finding: String? = try prepare("PRAGMA quick_check(1)").first { row throws(SQLiteError) in try row.value(0) }
    if let finding, finding != "ok" { throw SQLiteError(.corrupt, detail: finding) }
  }

  /// Writes all of the log into the file, and cuts the log to nothing. False where a reader still needs it; that reader
  /// is not waited for.
  public func truncateLog() throws(SQLiteError) -> Bool {
    let timeout = busyTimeout
    unsafe sqlite3_busy_timeout(handle, 0)
    defer { unsafe sqlite3_busy_timeout(handle, timeout) }
    let result = unsafe sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    if result & 0xff == SQLITE_BUSY { return false }
    guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: handle) }
    return true
  }

  /// Runs `body`, in which this connection waits for nothing: neither for a lock of another one nor for the disk; nor does it
  /// go on for much longer than a fifth of a millisecond. What it would have to wait for is an error, after which the same may
  /// be done again with waiting. So who reads may be on the loop; a commit waits for the disk all the same. Nil where SQLite
  /// is not built as Debian's is; then nothing is run.
  public func withoutWaiting<Value>(_ body: () -> Value) -> Value? {
    precondition(statementTimeout == nil, "somebody else's database is not read on the loop")
    unsafe sqlite3_busy_timeout(handle, 0)
    defer { unsafe sqlite3_busy_timeout(handle, busyTimeout) }
    // Each call is another thousand instructions of SQLite's virtual machine in one run of a statement.
    var calls = 0
    return unsafe withUnsafeMutablePointer(to: &calls) { calls in
      unsafe sqlite3_progress_handler(
        handle, 1000,
        { calls in
          guard let calls = unsafe calls?.assumingMemoryBound(to: Int.self) else { return 0 }
          unsafe calls.pointee += 1
          return unsafe calls.pointee > 10 ? 1 : 0
        }, calls)
      defer { unsafe sqlite3_progress_handler(handle, 0, nil, nil) }
      return FileSystem.withoutWaiting(body)
    }
  }

  // MARK: Beneath

  /// Once, before the first is opened.
  private static let withoutStatistics: Void = csqlite_count_no_memory()

  /// In milliseconds.
  private var busyTimeout: Int32 = 0

  private func configure(_ access: Access, _ timeout: Duration) throws(SQLiteError) {
    let milliseconds = timeout.components.seconds * 1000 + timeout.components.attoseconds / 1_000_000_000_000_000
    busyTimeout = Int32(clamping: milliseconds)
    unsafe sqlite3_busy_timeout(handle, busyTimeout)
    var options: [(Int32, Int32)] = [(SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)]
    if case .foreign(let foreignKeys, _) = access {
      // Not the rest: a trigger on a full-text index, or one with a text in double quotes, has to go on working.
      options.append((SQLITE_DBCONFIG_ENABLE_FKEY, foreignKeys ? 1 : 0))
      limitStatements()
    } else {
      options += [
        (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_DQS_DDL, 0), (SQLITE_DBCONFIG_DQS_DML, 0),
        (SQLITE_DBCONFIG_ENABLE_FKEY, 1),
      ]
    }
    for (option, value) in options {
      let result = unsafe csqlite_configure(handle, option, value)
      guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: handle) }
    }
    // Nothing personal in files of temporary results, nor left in pages that are free.
    try execute("PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON")
    if case .foreign = access { try execute("PRAGMA synchronous = FULL") }
    guard case .readWrite(let pageSize) = access else { return }
    // A number of ours; a pragma takes no parameters.
    try execute(text: "PRAGMA page_size = \(pageSize)")
    guard try changeToWAL(until: .now + timeout) == "wal" else {
      throw SQLiteError(.cantOpen, detail: "the file system cannot do what the log needs: shared memory")
    }
    try execute("PRAGMA synchronous = FULL")
    let actual: Int64? = try prepare("PRAGMA page_size").first { row throws(SQLiteError) in try row.value(0) }
    unsafe sqlite3_wal_autocheckpoint(handle, Int32(Self.logSize / Int(max(actual ?? 4096, 512))))
    try execute(text: "PRAGMA journal_size_limit = \(Self.logSize)")
  }

  /// Changes the file to WAL mode, and returns the mode that it has then. SQLite itself does not wait for the lock here: this
  /// statement reads before it writes, and two connections that did so would wait for each other
  /// (https://www.sqlite.org/c3ref/busy_handler.html). So it fails, gives up its lock, and is tried again once the other
  /// connection has ended its transaction.
  private func changeToWAL(until end: MonotonicTime) throws(SQLiteError) -> String? {
    while true {
      do throws(SQLiteError) {
        return try prepare("PRAGMA journal_mode = WAL").first { row throws(SQLiteError) in try row.value(0) }
      } catch {
        guard error.code == .busy, .now < end else { throw error }
        try execute("BEGIN IMMEDIATE; ROLLBACK")
      }
    }
  }

  private func execute(text: String) throws(SQLiteError) {
    beginTime()
    let result = unsafe sqlite3_exec(handle, text, nil, nil, nil)
    guard result == SQLITE_OK else { throw unsafe SQLiteError(result, of: handle) }
  }

  /// A run of a statement that is kept starts to count: its time, and its instructions. SQLite asks whether to interrupt a
  /// statement once all its runs together have so many, even behind the last one: what has happened would have failed.
  func begins(_ statement: OpaquePointer) {
    unsafe sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1)
    beginTime()
  }

  private func beginTime() { if let statementTimeout { statementEnd = .now + statementTimeout } }

  /// Has SQLite interrupt a statement whose time is over; it rolls the transaction back where the statement writes.
  private func limitStatements() {
    // Every 10,000 instructions of SQLite's virtual machine, well below a millisecond. The pointer is valid for as long
    // as statements run: each keeps its database.
    unsafe sqlite3_progress_handler(
      handle, 10_000,
      { database in
        guard let database = unsafe database else { return 0 }
        let end = unsafe Unmanaged<Database>.fromOpaque(database).takeUnretainedValue().statementEnd
        return end < .now ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// What begins or ends a transaction, or a part of one.
  private enum Step: Int, CaseIterable {
    case begin
    /// It waits for the lock at its beginning. Later, SQLite could only refuse.
    case beginImmediate
    case commit, rollback
    case beginPart, endPart, undoPart

    var text: StaticString {
      switch self {
      case .begin: "BEGIN"
      case .beginImmediate: "BEGIN IMMEDIATE"
      case .commit: "COMMIT"
      case .rollback: "ROLLBACK"
      case .beginPart: "SAVEPOINT part"
      case .endPart: "RELEASE part"
      case .undoPart: "ROLLBACK TO part"
      }
    }
  }

  /// How a transaction, or a part of one, begins and ends.
  private struct Bounds {
    let beginning, end: Step
    let undoing: [Step]
    var isPart = false

    static let writing = Bounds(beginning: .beginImmediate, end: .commit, undoing: [.rollback])
    static let reading = Bounds(beginning: .begin, end: .commit, undoing: [.rollback])
    static let part = Bounds(beginning: .beginPart, end: .endPart, undoing: [.undoPart, .endPart], isPart: true)
  }

  /// Compiles the step where that was not done before, and takes it.
  private func take(_ step: Step) throws(SQLiteError) {
    let statement: OpaquePointer
    if let compiled = unsafe steps[step.rawValue] {
      unsafe statement = compiled
    } else {
      unsafe statement = try Statement.compile(step.text, in: self)
      unsafe steps[step.rawValue] = statement
    }
    unsafe begins(statement)
    let result = unsafe sqlite3_step(statement)
    // It returns the failure of the step.
    unsafe sqlite3_reset(statement)
    guard result == SQLITE_DONE else { throw unsafe SQLiteError(result, of: handle, hasErrno: step != .commit) }
  }

  private func transaction<Value, Failure: Error>(
    _ bounds: Bounds, translating translate: (SQLiteError) -> Failure,
    noting note: (inout Failure, _ rollback: SQLiteError) -> Void, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    do throws(SQLiteError) { try take(bounds.beginning) } catch { throw translate(error) }
    do throws(Failure) {
      let value = try body()
      do throws(SQLiteError) { try take(bounds.end) } catch { throw translate(error) }
      return value
    } catch {
      // After some failures SQLite has rolled back by itself.
      guard isInTransaction else { throw error }
      var error = error
      do throws(SQLiteError) {
        for step in bounds.undoing { try take(step) }
      } catch let second {
        note(&error, second)
        // A part that stays would be committed with the rest.
        if bounds.isPart { do throws(SQLiteError) { try take(.rollback) } catch let third { note(&error, third) } }
      }
      throw error
    }
  }

  private static func note(_ error: inout SQLiteError, _ rollback: SQLiteError) {
    error.rollbackFailure = rollback.description
  }
}
