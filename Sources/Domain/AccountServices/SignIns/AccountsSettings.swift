package import AccountEvents
package import Configuration
package import Cryptography
package import EventLoop
package import HTTPClient
package import HTTPServer

/// Who may sign people in, where they ask, and how much.
package struct AccountsSettings: Sendable {
  /// An application that asks.
  package struct Caller: Sendable, Hashable {
    /// How it is called here: in logs.
    package let name: String
    /// The apps that it may act for.
    package let clients: Set<ClientID>
    /// The digests of the tokens that it may show.
    package let tokens: [SHA256Digest]

    /// A caller from its parts.
    package init(name: String, clients: Set<ClientID>, tokens: [SHA256Digest]) {
      (self.name, self.clients, self.tokens) = (name, clients, tokens)
    }
  }

  /// Where applications ask.
  package var listen: SocketAddress
  /// What proves to them who we are.
  package var tls: TLSServerConfiguration
  /// Where health and metrics are asked for.
  package var admin: SocketAddress
  /// Who may ask.
  package var callers: [Caller]
  /// How many requests a second each caller has.
  package var rate: Int
  /// How many streams of events each caller may have at once.
  package var streams: Int
  /// The most open connections, in all and from one address.
  package var connections: (all: Int, perAddress: Int)
  /// From where load balancers connect that speak the PROXY protocol; none unless somebody says so.
  package var proxies: [AddressRange] = []
  /// Where the audit log is published; nil where nobody is told.
  package var auditLog: HTTPClientURL?
  /// How long finishing what was begun may take once we are told to end.
  package var drainDeadline: Duration
  /// How long all is served before that, while `/readyz` says already that it ends.
  package var lameDuck = Duration.zero

  /// Everything said, nothing assumed.
  package init(
    listen: SocketAddress, tls: TLSServerConfiguration, admin: SocketAddress, callers: [Caller], rate: Int,
    streams: Int, connections: (all: Int, perAddress: Int), auditLog: HTTPClientURL?, drainDeadline: Duration
  ) {
    (self.listen, self.tls, self.admin, self.callers) = (listen, tls, admin, callers)
    (self.rate, self.streams) = (rate, streams)
    (self.connections, self.auditLog, self.drainDeadline) = (connections, auditLog, drainDeadline)
  }

  /// Reads `accounts`. Each app of a caller has to be one of `teams`.
  package init(reading settings: inout Settings, teams: [ClientID: TeamID]) {
    listen = settings.read(
      "accounts.listen", .socketAddress, default: .any(port: 8448), "Where applications ask, over TLS.")
    tls = TLSServerConfiguration(
      certificateFile: settings.read(
        "accounts.certificate", .file(), "The certificate and its chain for applications, PEM."),
      privateKeyFile: settings.read(
        "accounts.private-key", .file(isPrivate: true), "The certificate's private key, PEM, not encrypted."))
    admin = settings.read(
      "accounts.admin", .socketAddress, default: .loopback(port: 9448),
      "Where /livez, /readyz and /metrics are, without TLS.")
    proxies = settings.readProxies("accounts.proxy-protocol")
    let read = settings.readEach("accounts.callers", .callerName, named: "CALLER") { settings, path, name in
      (path: path, caller: Caller(reading: &settings, at: path, named: name))
    }
    callers = read.map(\.value.caller)
    var seen: [SHA256Digest: String] = [:]
    for (path, caller) in read.map(\.value) {
      if let stranger = caller.clients.first(where: { teams[$0] == nil }) {
        settings.refuse("\(path).clients", "\(stranger) stands in no teams.TEAM.audiences")
      }
      for token in caller.tokens {
        if let other = seen.updateValue(caller.name, forKey: token) {
          settings.refuse("\(path).tokens", "a token of \(other) stands here again")
        }
      }
    }
    rate = settings.read(
      "accounts.limits.requests", .integer(1...100_000, unit: "requests a second"), default: 100,
      "How many requests a second each caller has; beyond it: 429.")
    streams = settings.read(
      "accounts.limits.streams", .integer(1...1000, unit: "streams"), default: 4,
      "How many streams of events each caller may have at once; beyond it: 429. All together have half of the connections."
    )
    connections = (
      all: settings.read(
        "accounts.limits.connections", .integer(1...100_000, unit: "connections"), default: 1024,
        "The most open connections."),
      perAddress: settings.read(
        "accounts.limits.connections-per-address", .integer(1...100_000, unit: "connections"), default: 256,
        "The most open connections from one address; further ones are closed.")
    )
    auditLog = settings.readIfPresent(
      "accounts.audit-log", .httpURL,
      "Where the audit log is published: answers about deletions that are done name it, so that applications get the proof from there."
    )
    drainDeadline = settings.read(
      "accounts.drain", .duration(.zero ... .seconds(300)), default: .seconds(25),
      "How long finishing what was begun may take after SIGTERM.")
    lameDuck = settings.readLameDuck("accounts.lame-duck")
    settings.check(tls, certificate: "accounts.certificate", privateKey: "accounts.private-key")
    if admin == listen, admin.port != 0 {
      settings.refuse("accounts.admin", "expected another address than accounts.listen")
    }
    if !admin.isLoopback {
      settings.warn("accounts.admin", "not a loopback address: whoever reaches it reads the metrics")
    }
  }
}

extension AccountsSettings.Caller {
  fileprivate init(reading settings: inout Settings, at path: String, named name: String) {
    let clients = settings.read(
      "\(path).clients", .list(of: .clientID, count: 1...1000),
      "The App IDs and Services IDs that the caller CALLER may act for; each is an audience of a team.")
    let tokens = settings.read(
      "\(path).tokens", .list(of: .tokenDigest, count: 1...2),
      "The SHA-256 of the bearer token that it shows, as siwa accounts create-token prints it; two while one is replaced."
    )
    self.init(name: name, clients: Set(clients), tokens: tokens)
  }
}

extension SettingType where Value == String {
  fileprivate static var callerName: SettingType {
    SettingType(
      "name", expected: "a name of 1 to 40 small letters, digits and hyphens", standIn: "shop", show: { $0 },
      parse: { text in
        1...40 ~= text.utf8.count
          && text.utf8.allSatisfy { 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2d } ? text : nil
      })
  }
}

extension SettingType where Value == SHA256Digest {
  /// As `sha256sum` prints it.
  fileprivate static var tokenDigest: SettingType {
    SettingType(
      "SHA-256", expected: "64 hexadecimal digits, the letters small", standIn: SHA256.digest(of: []),
      show: \.description, parse: { AccountHash($0).flatMap { SHA256Digest(bytes: $0.bytes) } })
  }
}
