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
  /// How long a connection may take to stand: names, TCP, TLS and authentication together. Each of several hosts gets its
  /// share, unless the connection string has a `connect_timeout`. After it those who wait are told; the attempt goes on
  /// until libpq has tried all addresses of all hosts.
  public var connectTimeout: Duration
  /// How long one host, by libpq's reckoning one address, may take.
  var hostTimeout: Duration { ownTimeout.map { .seconds($0) } ?? connectTimeout / hosts }
  private let hosts: Int
  private let ownTimeout: Int?
  /// How long whoever wants a connection waits for one, attempts that fail included.
  public var leaseTimeout: Duration
  /// How long the server works on one statement at most.
  public var statementTimeout: Duration
  /// How long the answer to one request, a whole batch included, may take before the connection is given up. Longer than
  /// `statementTimeout`, so that the server speaks first where it can.
  public var responseTimeout: Duration
  /// What holds for statements outside of transactions, each of which is one of its own.
  public var defaultIsolation: Isolation
  /// Whether row-level security may hide rows from statements. Where not, the server refuses a statement from which a policy
  /// would keep any (`row_security = off`): then nobody takes for gone what is only out of sight.
  public var hidesRows = true
  /// How often a transaction is begun that another one keeps from being committed, or that loses its connection.
  public var transactionAttempts: Int
  /// How long a connection is used before another one takes its place; up to a tenth less, so that they do not all end
  /// at once. So a server that was replaced is found, and memory that a session has gathered is given back.
  public var longestLife = Duration.seconds(30 * 60)
  /// How long a connection may have been idle and still be lent. Routers and load balancers forget what is silent for
  /// longer, from some four minutes on, and tell neither side.
  public var longestIdle = Duration.seconds(3 * 60)

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
    guard let options = Self.options(in: connectionInfo) else {
      // libpq's words quote the text, and so the password.
      throw PostgreSQLError(.configuration, detail: "neither a URI nor pairs of names and values that libpq knows")
    }
    (self.connectionInfo, place, self.size) = (connectionInfo, Self.place(of: options), size)
    func count(_ name: String) -> Int {
      options[name]?.split(separator: ",", omittingEmptySubsequences: false).count ?? 1
    }
    hosts = max(count("host"), count("hostaddr"))
    ownTimeout = options["connect_timeout"].flatMap { Int($0) }.flatMap { $0 > 0 ? min($0, 300) : nil }
    (self.connectTimeout, self.leaseTimeout) = (connectTimeout, leaseTimeout)
    (self.statementTimeout, self.responseTimeout) = (statementTimeout, responseTimeout)
    (self.defaultIsolation, self.transactionAttempts) = (defaultIsolation, transactionAttempts)
  }

  /// The settings of `connectionInfo` that say where a database is, without users and passwords; nil where libpq cannot
  /// read it.
  public static func place(in connectionInfo: String) -> String? { options(in: connectionInfo).map(place(of:)) }

  private static func place(of options: [String: String]) -> String {
    ["dbname", "host", "hostaddr", "port", "sslmode"].compactMap { name in options[name].map { "\(name)=\($0)" } }
      .joined(separator: " ")
  }

  /// What an operator should know of `connectionInfo`: whoever stands between us and the server could read along or play
  /// the server, of which sockets and loopback of this machine are no such place; or a server that only reads would be
  /// stayed with although there are others. Empty where there is nothing, and where libpq cannot read it.
  public static func weaknesses(of connectionInfo: String) -> [String] {
    guard let options = options(in: connectionInfo) else { return [] }
    let defaults = unsafe Self.options(PQconndefaults())
    func value(_ name: String) -> String { options[name] ?? defaults[name] ?? "" }
    // Where there is an address, it is what libpq connects to.
    let names = value("host").split(separator: ",", omittingEmptySubsequences: false)
    let addresses = value("hostaddr").split(separator: ",", omittingEmptySubsequences: false)
    let attributes = value("target_session_attrs")
    let isAny = max(names.count, addresses.count) > 1 && (attributes.isEmpty || attributes == "any")
    return [
      distrust(
        value("sslmode"), names, addresses,
        isElsewhere: options["host"] == nil && options["hostaddr"] == nil && !value("service").isEmpty),
      isAny
        ? "with several hosts, target_session_attrs=\(attributes.isEmpty ? "any" : attributes) stays with the first that answers, though it only reads: say target_session_attrs=read-write"
        : nil,
    ].compactMap(\.self)
  }

  /// `isElsewhere`: where the server is stands in a file of services, which is read when the connection is made.
  private static func distrust(
    _ mode: String, _ names: [Substring], _ addresses: [Substring], isElsewhere: Bool
  ) -> String? {
    guard mode != "verify-full", mode != "verify-ca" else { return nil }
    if isElsewhere {
      return
        "service: its file may name a server of which nobody makes sure who it is: say sslmode=verify-full here, too"
    }
    let isRemote = (0..<max(names.count, addresses.count)).contains { index in
      let address = index < addresses.count ? addresses[index] : ""
      let place = !address.isEmpty ? address : index < names.count ? names[index] : ""
      let isSocket = place.isEmpty || place.hasPrefix("/") || place.hasPrefix("@")
      return !isSocket && place != "localhost" && place != "::1" && !place.hasPrefix("127.")
    }
    return isRemote
      ? "sslmode=\(mode) does not make sure who the server is: use verify-full, with sslrootcert where its authority is your own"
      : nil
  }

  /// What libpq reads in a connection string; nil where it cannot.
  private static func options(in connectionInfo: String) -> [String: String]? {
    // At a NUL, C would stop reading.
    guard !connectionInfo.utf8.contains(0), let options = unsafe PQconninfoParse(connectionInfo, nil) else {
      return nil
    }
    return unsafe Self.options(options)
  }

  /// The options that have a value, by their names; frees the list.
  private static func options(_ list: UnsafeMutablePointer<PQconninfoOption>?) -> [String: String] {
    guard let list = unsafe list else { return [:] }
    defer { unsafe PQconninfoFree(list) }
    var values: [String: String] = [:]
    var option = unsafe list
    while let keyword = unsafe option.pointee.keyword {
      if let value = unsafe option.pointee.val {
        values[unsafe String(cString: keyword)] = unsafe String(cString: value)
      }
      unsafe option += 1
    }
    return values
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
