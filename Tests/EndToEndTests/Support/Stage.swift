import AccountEvents
import AccountServices
import AppleSimulator
import Cryptography
import EventLoop
import HTTPClient
import HTTPServer
import Telemetry
import TestSupport
import Testing

/// Everything around `siwa-ingress`: a simulated Apple that serves its keys over TLS, a Kafka, a certificate, a folder.
@Loop
final class Stage {
  nonisolated static let path = "/apple/notifications"
  nonisolated static let person = Person(named: "Ada")
  /// The apps that deploy/siwa.yaml names.
  nonisolated static let (app, web) = ("com.example.app", "com.example.web")

  let apple: SimulatedApple
  /// Where the brokers are.
  let brokers: String
  let files: TemporaryDirectory
  let client: HTTPClient
  private let certificate: (path: String, key: String)
  private let appleServer: SimulatedAppleServer

  /// Runs `body` while Apple serves its keys. The Kafka is the caller's.
  static func run(brokers: String, _ body: @Loop (Stage) async throws -> Void) async throws {
    let stage = try Stage(brokers)
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [server = stage.appleServer] in await server.run() }
      defer { group.cancelAll() }
      try await body(stage)
    }
  }

  private init(_ brokers: String) throws {
    self.brokers = brokers
    files = TemporaryDirectory()
    certificate = (
      files.write("certificate.pem", Self.certificate.certificatePEM),
      files.write("key.pem", Self.certificate.privateKeyPEM)
    )
    apple = SimulatedApple(
      ring: Self.ring, issuer: AppleNotification.appleIssuer, trustAnchors: .systemAnd(file: certificate.path),
      clock: { .now })
    appleServer = try SimulatedAppleServer(
      apple, port: 0,
      tls: TLSServerConfiguration(certificateFile: certificate.path, privateKeyFile: certificate.key))
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .systemAnd(file: certificate.path), proxy: .none,
        connectTimeout: .seconds(300), maximumConnections: 8, maximumRequests: 64))
  }

  /// The file that makes a client believe the ingress.
  var trustAnchor: String { certificate.path }

  /// What differs from deploy/siwa.yaml: where everything is, and any free port.
  var environment: [String: String] {
    [
      "SIWA_CONFIG": Repository.root + "/deploy/siwa.yaml",
      "SIWA_APPLE_KEYS": appleServer.keysURL, "SIWA_APPLE_TRUSTED_CA": certificate.path,
      "SIWA_APPLE_KEYS_FILE": files.path + "/apple-keys.json", "SIWA_INGRESS_SPOOL_DIRECTORY": files.path + "/spool",
      "SIWA_KAFKA_BOOTSTRAP_SERVERS": brokers, "SIWA_KAFKA_SECURITY_PROTOCOL": "plaintext",
      "SIWA_INGRESS_CERTIFICATE": certificate.path, "SIWA_INGRESS_PRIVATE_KEY": certificate.key,
      "SIWA_INGRESS_LISTEN": "127.0.0.1:0", "SIWA_INGRESS_ADMIN": "127.0.0.1:0", "SIWA_LOG_LEVEL": "debug",
      // A machine full of other tests may hold this one up for longer than a caller of the ingress may take.
      "SIWA_INGRESS_DEADLINES_HANDSHAKE": "5m", "SIWA_INGRESS_DEADLINES_HEAD": "5m",
      "SIWA_INGRESS_DEADLINES_BODY": "5m",
    ]
  }

  /// The same for a service in this process.
  var settings: IngressSettings {
    IngressSettings(
      listen: .loopback(port: 0), path: Self.path,
      tls: TLSServerConfiguration(certificateFile: certificate.path, privateKeyFile: certificate.key),
      admin: .loopback(port: 0), sharesPort: false,
      limits: HTTPServerLimits(head: 8192, fields: 64, body: 16_384, connections: 64, connectionsPerAddress: 64),
      deadlines: HTTPServerDeadlines(
        handshake: .seconds(60), head: .seconds(60), body: .seconds(60), idle: .seconds(60), request: .seconds(90)),
      spool: SpoolSettings(directory: files.path + "/spool", size: 64 << 20, after: .seconds(30)),
      duplicates: DuplicatesSettings(number: 1000, time: .seconds(3600)), publishDeadline: .seconds(60),
      drainDeadline: .seconds(30))
  }

  /// Runs `body` with the ingress listening, then kills it if it still runs. `descriptors` are the soft and the hard limit
  /// of those that it may have, as prlimit(1) takes them.
  func ingress(
    _ changes: [String: String] = [:], descriptors: String? = nil, _ body: @Loop (RunningIngress) async throws -> Void
  ) async throws {
    let own = RunningProgram.path(of: "siwa-ingress")
    let limited = descriptors.map { ["--nofile=\($0)", own] }
    try await RunningProgram.run(
      path: limited == nil ? own : "/usr/bin/prlimit", limited ?? [], environment.merging(changes) { $1 }
    ) { program in
      try await body(try await RunningIngress(program, client))
    }
  }

  /// What Apple signs.
  func sign(
    _ type: NotificationType = .consentRevoked, for audience: String = app, _ faults: Fault...
  ) throws -> SignedNotification {
    try apple.sign(type, of: Self.person, for: audience, faults: faults)
  }

  // Made once: keys take long.
  nonisolated static let ring = made { try KeyRing(generating: 2) }
  private nonisolated static let certificate = made {
    try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1"], validFrom: Timestamp.now.milliseconds / 1000 - 3600, seconds: 86_400)
  }
}

/// What the tests cannot do without.
private func made<Value>(_ make: () throws -> Value) -> Value {
  do { return try make() } catch { fatalError("\(error)") }
}
