import CLibpq

/// Which database, and what holds for all connections to it.
public struct PostgreSQLConfiguration: Sendable {
  /// How transactions that run side by side see each other.
  public enum Isolation: String, Sendable, CaseIterable {
    /// Each statement sees what was committed before it.
    case readCommitted = "read committed"
    /// All statements see what was committed before the first; who writes what another has written since must try again.
    case repeatableRead = "repeatable read"
    /// As though one transaction had run after the other; who does not fit must try again.
    case serializable
  }

  /// The database as libpq names it: holds a password, maybe.
  let connectionInfo: String
  /// Where it is, for people.
  private let place: String
  /// How many connections there are at most.
  public var size: Int
  /// How long a connection may take to stand: names, TCP, TLS and authentication together, over all hosts.
  public var connectTimeout: Duration
  /// How long whoever wants a connection waits for one, attempts that fail included.
  public var leaseTimeout: Duration
  /// How long the server works on one statement at most.
  public var statementTimeout: Duration
  /// How long the answer to one request, a whole batch included, may take before the connection is given up. Longer than
  /// `statementTimeout`, so that the server speaks first where it can.
  public var responseTimeout: Duration
  /// What holds for statements outside of transactions, each of which is one of its own.
  public var defaultIsolation: Isolation
  /// How often a transaction is begun that another one keeps from being committed, or that loses its connection.
  public var transactionAttempts: Int

  /// A configuration for the database that `connectionInfo` names: a URI (`postgresql://…`) or pairs (`host=… dbname=…`).
  ///
  /// libpq reads it and acts by it, with all of its settings: hosts, Unix sockets, `sslmode`, `sslrootcert`, `passfile`
  /// and the others of its manual; so do the variables of the environment that libpq reads. Two things are otherwise:
  /// `client_encoding` is always UTF-8, and `gssencmode` is `disable` unless it is set, and then refused.
  public init(
    connectionInfo: String, size: Int, connectTimeout: Duration, leaseTimeout: Duration, statementTimeout: Duration,
    responseTimeout: Duration, defaultIsolation: Isolation, transactionAttempts: Int
  ) throws(PostgreSQLError) {
    precondition(size > 0 && transactionAttempts > 0, "a limit of nothing")
    precondition(
      connectTimeout > .zero && leaseTimeout > .zero && statementTimeout >= .milliseconds(1)
        && responseTimeout > statementTimeout, "a time in which nothing can be done")
    guard let place = Self.place(in: connectionInfo) else {
      // libpq's words quote the text, and so the password.
      throw PostgreSQLError(.configuration, detail: "neither a URI nor pairs of names and values that libpq knows")
    }
    (self.connectionInfo, self.place, self.size) = (connectionInfo, place, size)
    (self.connectTimeout, self.leaseTimeout) = (connectTimeout, leaseTimeout)
    (self.statementTimeout, self.responseTimeout) = (statementTimeout, responseTimeout)
    (self.defaultIsolation, self.transactionAttempts) = (defaultIsolation, transactionAttempts)
  }

  /// The settings of `connectionInfo` that say where a database is, without users and passwords; nil where libpq cannot
  /// read it.
  public static func place(in connectionInfo: String) -> String? {
    // At a NUL, C would stop reading.
    guard !connectionInfo.utf8.contains(0), let options = unsafe PQconninfoParse(connectionInfo, nil) else {
      return nil
    }
    defer { unsafe PQconninfoFree(options) }
    var named: [String] = []
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword {
      let name = unsafe String(cString: keyword)
      if ["host", "hostaddr", "port", "dbname", "sslmode"].contains(name), let value = unsafe option.pointee.val {
        named.append("\(name)=\(unsafe String(cString: value))")
      }
      unsafe option += 1
    }
    return named.joined(separator: " ")
  }
}

extension PostgreSQLConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Where the database is; neither users nor passwords.
  public var description: String { "PostgreSQL(\(place))" }
  /// The same.
  public var debugDescription: String { description }
  /// Nothing: a dump must not show the password.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
