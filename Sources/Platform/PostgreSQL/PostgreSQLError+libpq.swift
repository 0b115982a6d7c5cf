import CLibpq

extension PostgreSQLError {
  /// What the server answered instead of a result.
  init(_ result: OpaquePointer) {
    /// The text of one of the error's fields.
    func field(_ code: Int) -> String? {
      unsafe PQresultErrorField(result, CInt(code)).map { unsafe String(cString: $0) }
    }
    let state = field(clibpq_sqlstate)
    // The server's message often quotes the value that it did not like. The names in the schema do not.
    let names = [
      ("constraint", clibpq_constraint), ("table", clibpq_table), ("column", clibpq_column),
    ].compactMap { kind, code in field(code).map { "\(kind) \($0)" } }
    var code = state.map { Code(sqlState: $0) } ?? .connection
    // The one error of its code that goes away by itself, known by where in the server it arises, as its own JDBC driver
    // does.
    if code == .other, state == "0A000", field(clibpq_function) == "RevalidateCachedQuery" { code = .stalePlan }
    self.init(
      code, sqlState: state, detail: names.isEmpty ? code.words : names.joined(separator: ", "),
      serverMessage: field(clibpq_message) ?? "")
  }

  /// Why a connection did not come to stand, or broke. libpq's words name hosts and files, and of what the server said
  /// its code alone (PQERRORS_SQLSTATE).
  static func connection(_ connection: OpaquePointer) -> PostgreSQLError {
    let text = unsafe String(cString: PQerrorMessage(connection))
    // What begins with a tab is advice.
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("\t") }.map { line in
      String(decoding: line.utf8.map { $0 >= 0x20 && $0 < 0x7f ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
    // The last of several hosts counts.
    let state = lines.last.flatMap { Self.sqlState(endOf: $0) }
    let isWithoutPassword = unsafe PQconnectionNeedsPassword(connection) == 1
    return PostgreSQLError(
      state.map { Code(sqlState: $0) } ?? (isWithoutPassword ? .authentication : .connection), sqlState: state,
      detail: lines.isEmpty ? "the connection broke" : String(lines.joined(separator: "; ").prefix(400)))
  }

  /// The code in a line such as `connection to server on socket "…" failed: FATAL:  28P01`.
  private static func sqlState(endOf line: String) -> String? {
    let last = line.suffix(8)
    guard last.hasPrefix(":  ") else { return nil }
    let code = last.dropFirst(3)
    let isCode = code.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (65...90).contains($0) }
    return code.count == 5 && isCode ? String(code) : nil
  }
}

extension PostgreSQLError.Code {
  /// The code for one of PostgreSQL's (appendix A of its manual), or else for its class, which is its first two characters.
  init(sqlState: String) {
    switch sqlState {
    case "23505": self = .uniqueViolation
    case "25006": self = .readOnly
    // A transaction that nobody went on with, or that took too long: the server has ended it with its connection.
    case "25P03", "25P04": self = .unavailable
    case "26000": self = .stalePlan
    case "40001": self = .serialization
    case "40P01": self = .deadlock
    case "42501": self = .permission
    case "55P03": self = .lock
    case "57014": self = .statementTimeout
    default:
      switch sqlState.prefix(2) {
      case "08": self = .connection
      case "22": self = .data
      case "23": self = .constraint
      case "28": self = .authentication
      case "3D": self = .unknownDatabase
      case "40": self = .serialization
      case "42": self = .statement
      case "53": self = .resources
      case "57": self = .unavailable
      case "58", "XX": self = .server
      case "P0": self = .raised
      default: self = .other
      }
    }
  }

  /// What there is to say where the server named nothing of the schema.
  fileprivate var words: String {
    switch self {
    case .data: "a value that its type does not have"
    case .deadlock: "transactions waited for each other"
    case .serialization: "transactions that ran side by side do not fit"
    case .stalePlan: "a prepared statement does not hold any more"
    case .statement: "the statement does not fit the schema, or is none"
    case .statementTimeout: "the statement took too long, or was ended at the server"
    case .unavailable: "the server ended the connection"
    default: "the server refused it"
    }
  }
}
