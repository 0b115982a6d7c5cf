import CSQLite
import Glibc

/// What went wrong with a database.
public struct SQLiteError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  public enum Code: String, Sendable, CaseIterable {
    /// Somebody else holds the lock, and held it for longer than the busy timeout.
    case busy
    /// The disk is full, or the database has as many pages as it may have.
    case full
    /// The operating system failed to read, write or sync.
    case ioError
    /// The file is a database, but a damaged one.
    case corrupt
    /// The file is no database.
    case notADatabase
    /// A row would break what the schema wants to be true.
    case constraint
    /// The database, its file or its directory cannot be written.
    case readOnly
    /// The file is not there, cannot be opened, or is not ours alone to write.
    case cantOpen
    /// The statement ran for longer than the connection allows. Nothing of it, or of its transaction, has happened.
    case statementTimeout
    /// The schema changed, and the statement does not fit it any more.
    case schema
    /// A column holds another type than the one that was asked for, or there is no such column.
    case unexpectedValue
    /// No memory.
    case outOfMemory
    /// Nothing of the above; `detail` says more.
    case other
  }

  /// What happened.
  public let code: Code
  /// SQLite's own extended result code; 0 where SQLite was not involved.
  public let extendedCode: Int32
  /// SQLite's words, or ours. Never a value that was bound or read.
  public let detail: String
  /// Where in the statement's own text the error is; nil where it lies elsewhere, as in a trigger.
  let place: Int?
  /// Why the transaction could not be rolled back afterwards; nil where it was, and outside of transactions.
  public internal(set) var rollbackFailure: String?

  init(_ code: Code, extendedCode: Int32 = 0, detail: String, place: Int? = nil) {
    (self.code, self.extendedCode, self.detail, self.place) = (code, extendedCode, detail, place)
  }

  /// The error of a column that holds what cannot be there; for types that are made of others. `detail` must not hold
  /// the value.
  public static func unexpectedValue(_ detail: String) -> SQLiteError { SQLiteError(.unexpectedValue, detail: detail) }

  /// What SQLite says about its last call on the connection, which returned `result`. Where it `hasErrno`, the operating
  /// system's word counts, too; SQLite keeps none of a commit, and would give that of something that failed before. Where a
  /// statement `hasRun`, its values may be in what SQLite says.
  init(_ result: Int32, of connection: OpaquePointer?, hasErrno: Bool = true, hasRun: Bool = false) {
    // Without a connection there are the general words about the code alone.
    let speaker = unsafe hasRun && Self.mayQuote(result) ? nil : connection
    let words = unsafe speaker.flatMap { unsafe sqlite3_errmsg($0) } ?? sqlite3_errstr(result)
    // SQLite knows one word for a full disk only: not that a quota or the size of a file is used up.
    let isFull =
      unsafe hasErrno
      && (connection.map { unsafe [EDQUOT, EFBIG, ENOSPC].contains(sqlite3_system_errno($0)) } ?? false)
    let code = Code(result)
    let offset = unsafe connection.map { unsafe sqlite3_error_offset($0) } ?? -1
    self.init(
      [.ioError, .cantOpen].contains(code) && isFull ? .full : code, extendedCode: result,
      detail: code == .statementTimeout
        ? "the statement ran for too long" : unsafe words.map { unsafe String(cString: $0) } ?? "error \(result)",
      place: offset < 0 ? nil : Int(offset))
  }

  /// Whether SQLite's words about a statement that ran may hold a value: those of a function, such as a path in JSON, do; and
  /// since 3.47 a trigger may compose its own.
  private static func mayQuote(_ result: Int32) -> Bool {
    // The macro SQLITE_CONSTRAINT_TRIGGER, which Swift does not see.
    result & 0xff == SQLITE_ERROR
      || result == SQLITE_CONSTRAINT | 7 << 8 && sqlite3_libversion_number() >= 3_047_000
  }

  /// The code and the words.
  public var description: String {
    let rollback = rollbackFailure.map { "; and the transaction could not be rolled back: \($0)" } ?? ""
    return "\(code.rawValue): \(detail)\(rollback)"
  }
}

extension SQLiteError.Code {
  /// The code for a result of SQLite's, extended or not.
  fileprivate init(_ result: Int32) {
    self =
      switch result & 0xff {
      // The last: another process has held a lock on the log's index for long, which no busy handler waits for.
      case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .busy
      case SQLITE_FULL: .full
      case SQLITE_IOERR: .ioError
      case SQLITE_CORRUPT: .corrupt
      case SQLITE_NOTADB: .notADatabase
      case SQLITE_CONSTRAINT: .constraint
      case SQLITE_READONLY: .readOnly
      case SQLITE_CANTOPEN, SQLITE_PERM: .cantOpen
      case SQLITE_INTERRUPT: .statementTimeout
      case SQLITE_SCHEMA: .schema
      case SQLITE_NOMEM: .outOfMemory
      default: .other
      }
  }
}
