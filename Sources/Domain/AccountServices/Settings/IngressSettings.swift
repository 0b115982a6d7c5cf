import AppleID
package import Configuration
package import EventLoop
package import HTTPServer

/// Where notifications arrive, and how much and how long anyone may keep us busy there.
package struct IngressSettings: Configurable, Equatable {
  /// Where notifications arrive.
  package var listen: SocketAddress
  /// The path that Apple was told.
  package var path: String
  /// What proves to Apple who we are.
  package var tls: TLSServerConfiguration
  /// Where health and metrics are asked for.
  package var admin: SocketAddress
  /// Whether several processes listen on the one address.
  package var sharesPort: Bool
  /// How much peers may send.
  package var limits: HTTPServerLimits
  /// How long peers may take.
  package var deadlines: HTTPServerDeadlines
  /// Where notifications wait that the broker does not take in time.
  package var spool: SpoolSettings
  /// How far back it is known what was accepted.
  package var duplicates: DuplicatesSettings
  /// How long the broker may take to acknowledge a notification that the spool does not take.
  package var publishDeadline: Duration
  /// How long what was accepted may take to be answered once we are told to end.
  package var drainDeadline: Duration
  /// From where load balancers connect that speak the PROXY protocol; none unless somebody says so.
  package var proxies: [AddressRange] = []
  /// How long all is served as before, but for `/readyz`, once we are told to end; no time unless somebody says so.
  package var lameDuck = Duration.zero

  /// Everything said, nothing assumed.
  package init(
    listen: SocketAddress, path: String, tls: TLSServerConfiguration, admin: SocketAddress, sharesPort: Bool,
    limits: HTTPServerLimits, deadlines: HTTPServerDeadlines, spool: SpoolSettings, duplicates: DuplicatesSettings,
    publishDeadline: Duration, drainDeadline: Duration
  ) {
    (self.listen, self.path, self.tls, self.admin, self.sharesPort) = (listen, path, tls, admin, sharesPort)
    (self.limits, self.deadlines, self.spool, self.duplicates) = (limits, deadlines, spool, duplicates)
    (self.publishDeadline, self.drainDeadline) = (publishDeadline, drainDeadline)
  }

  /// Reads `ingress`.
  package init(reading settings: inout Settings) {
    listen = settings.read(
      "ingress.listen", .socketAddress, default: .any(port: 8443), "Where notifications arrive, over TLS.")
    path = settings.read(
      "ingress.path", .httpPath, default: "/apple/notifications", "The path of the URL that Apple was told.")
    tls = TLSServerConfiguration(
      certificateFile: settings.read("ingress.certificate", .file(), "The certificate and its chain, PEM."),
      privateKeyFile: settings.read(
        "ingress.private-key", .file(isPrivate: true), "The certificate's private key, PEM, not encrypted."))
    admin = settings.read(
      "ingress.admin", .socketAddress, default: .loopback(port: 9443),
      "Where /livez, /readyz and /metrics are, without TLS.")
    sharesPort = settings.read(
      "ingress.share-port", .boolean, default: false,
      "Whether several processes of one host listen on ingress.listen (SO_REUSEPORT); each needs its own admin.")
    proxies = settings.readProxies("ingress.proxy-protocol")
    limits = HTTPServerLimits(readingIngress: &settings)
    deadlines = HTTPServerDeadlines(readingIngress: &settings)
    spool = SpoolSettings(reading: &settings)
    duplicates = DuplicatesSettings(reading: &settings)
    publishDeadline = settings.read(
      "ingress.deadlines.publish", .duration(.milliseconds(100) ... .seconds(60)), default: .seconds(5),
      "How long the broker may take to acknowledge a notification that the spool does not take; beyond it: 503.")
    drainDeadline = settings.read(
      "ingress.deadlines.drain", .duration(.zero ... .seconds(300)), default: .seconds(25),
      "How long answering what was accepted may take after SIGTERM.")
    lameDuck = settings.readLameDuck("ingress.deadlines.lame-duck")
    if spool.after >= deadlines.request {
      settings.refuse("ingress.spool.after", "expected less than ingress.deadlines.request")
    }
    if publishDeadline >= deadlines.request {
      settings.refuse("ingress.deadlines.publish", "expected less than ingress.deadlines.request")
    }
    settings.check(tls, certificate: "ingress.certificate", privateKey: "ingress.private-key")
    if admin == listen, admin.port != 0 {
      settings.refuse("ingress.admin", "expected another address than ingress.listen")
    }
    let room = DescriptorLimit.connections(within: DescriptorLimit.highest)
    if limits.connections > room {
      settings.warn(
        "ingress.limits.connections",
        "no more than \(room) can be open where a process may have \(DescriptorLimit.highest) descriptors (ulimit -Hn)")
    }
    if !admin.isLoopback {
      settings.warn("ingress.admin", "not a loopback address: whoever reaches it reads the metrics")
    }
  }
}

extension Settings {
  /// From where load balancers connect that speak the PROXY protocol.
  mutating func readProxies(_ name: String) -> [AddressRange] {
    let proxies = readIfPresent(
      name, .list(of: .addressRange, count: 1...64),
      "From where load balancers connect that say in a PROXY protocol header whom they forward; theirs must have it.")
    if let proxies, proxies.contains(where: \.isEverything) {
      warn(name, "everybody may say who they are: name the load balancers' addresses alone")
    }
    return proxies ?? []
  }

  /// How long all is served before a service ends.
  mutating func readLameDuck(_ name: String) -> Duration {
    read(
      name, .duration(.zero ... .seconds(300)), default: .zero,
      "How long after SIGTERM, and before the drain, all is served while /readyz says 503 already.")
  }
}

extension IngressSettings {
  /// How long the log goes on with a record. Longer than anybody waits: what it acknowledges late need not be published
  /// again from the spool, which would be its second time on the topic wherever the first one had arrived.
  var logDeadline: Duration { max(.seconds(30), publishDeadline) }
}

extension HTTPServerLimits {
  fileprivate init(readingIngress settings: inout Settings) {
    self.init(
      head: settings.read(
        "ingress.limits.head", .byteSize(1024...65_536), default: 16_384,
        "The largest request line and header fields together; beyond it: 431."),
      fields: settings.read(
        "ingress.limits.fields", .integer(10...1000, unit: "header fields"), default: 100,
        "The most header fields; beyond it: 431."),
      body: settings.read(
        "ingress.limits.body", .byteSize(1024...UnverifiedNotification.maximumBodySize),
        default: UnverifiedNotification.maximumBodySize, "The largest body; beyond it: 413."),
      connections: settings.read(
        "ingress.limits.connections", .integer(1...100_000, unit: "connections"), default: 4096,
        "The most open connections; beyond it those make room that have shown nothing good for a second."),
      connectionsPerAddress: settings.read(
        "ingress.limits.connections-per-address", .integer(1...100_000, unit: "connections"), default: 1024,
        "The most open connections from one address, which may be one that a proxy names; further ones are closed."))
  }
}

extension HTTPServerDeadlines {
  fileprivate init(readingIngress settings: inout Settings) {
    func read(_ name: String, default preset: Duration, _ help: String) -> Duration {
      settings.read(
        "ingress.deadlines.\(name)", .duration(.milliseconds(100) ... .seconds(300)), default: preset, help)
    }
    self.init(
      handshake: read("handshake", default: .seconds(10), "From accept to the end of the TLS handshake."),
      head: read("head", default: .seconds(10), "From a request's first byte to the end of its head."),
      body: read("body", default: .seconds(10), "How long a body may take to arrive."),
      idle: read("idle", default: .seconds(60), "How long a connection may be silent between requests."),
      request: read("request", default: .seconds(30), "From a request's first byte to the last one of its answer."))
  }
}

extension SettingType where Value == String {
  /// What a request line can carry as a path and what nobody could spell in two ways.
  fileprivate static var httpPath: SettingType {
    SettingType(
      "path of a URL", expected: "a path that begins with /, of letters, digits and -._~/", standIn: "/",
      show: { $0 },
      parse: { text in
        let isPlain = text.utf8.allSatisfy { byte in
          (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
            || "-._~/".utf8.contains(byte)
        }
        return text.hasPrefix("/") && text.utf8.count <= 255 && isPlain ? text : nil
      })
  }
}
