import CLibpq

/// A word of the server's that is no error of a statement.
public struct PostgreSQLNotice: Sendable, Hashable {
  /// How bad it is, in PostgreSQL's own words: `DEBUG`, `LOG`, `INFO`, `NOTICE`, `WARNING`; `FATAL` where a server says
  /// why it ends a connection that waits for nothing.
  public let severity: String
  /// PostgreSQL's code of five characters.
  public let sqlState: String
  /// What it says. A function of the database's own can put values into it.
  public let text: String

  init(_ result: OpaquePointer?) {
    /// The text of one of the notice's fields.
    func field(_ code: Int) -> String {
      unsafe PQresultErrorField(result, CInt(code)).map { unsafe String(cString: $0) } ?? ""
    }
    (severity, sqlState, text) = (field(clibpq_severity), field(clibpq_sqlstate), field(clibpq_message))
  }
}

/// Takes what a server says beside its answers. Called on the loop, and on another thread while a connection is being
/// made: so it must be quick.
public typealias PostgreSQLLog = @Sendable (PostgreSQLNotice) -> Void
