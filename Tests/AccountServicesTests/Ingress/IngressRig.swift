import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import JSON
import Synchronization
import Telemetry
import TestSupport
import Testing

/// The ingress with everything around it in a test's hand: Apple, its keys, the log and the time. Notifications come in
/// over TLS, and operators ask over HTTP, as in production.
@Loop
final class IngressRig {
  nonisolated static let now = made { try #require(Timestamp(milliseconds: 1_767_225_600_000)) }
  nonisolated static let person = Person(named: "Ada")
  nonisolated static let path = "/apple/notifications"
  /// Two apps of one team, and one of another.
  nonisolated static let (app, web, otherApp) = ("com.example.app", "com.example.web", "org.example.other")
  nonisolated static let teams = made {
    let (team, otherTeam) = (try #require(TeamID("A1B2C3D4E5")), try #require(TeamID("Z9Y8X7W6V5")))
    return [
      try #require(ClientID(app)): team, try #require(ClientID(web)): team, try #require(ClientID(otherApp)): otherTeam,
    ]
  }

  /// The ingress's clock. Apple has one of its own, which stands still.
  final class Clock: Sendable {
    private let time = Mutex(IngressRig.now)
    var now: Timestamp { time.withLock { $0 } }
    func turn(by duration: Duration) { time.withLock { $0 = $0 + duration } }
  }

  let clock = Clock()
  let apple: SimulatedApple
  let source: KeysSource
  let log = MemoryLog()
  let lines = CapturedLog()
  let service: IngressService
  private let client: HTTPClient
  /// Where its certificate, `certificate.pem`, and its key, `key.pem`, are.
  let files: TemporaryDirectory

  /// Runs `body` while the ingress runs, then drains it. With `keysFailure` Apple's keys cannot be had from the start;
  /// `spoolSize` is what the spool may hold, in bytes.
  static func run(
    keysFailure: AppleKeysFailure? = nil, spoolSize: Int = 1 << 30, lameDuck: Duration = .zero,
    _ body: @Loop (IngressRig) async throws -> Void
  ) async throws {
    let rig = try await IngressRig(spoolSize: spoolSize, lameDuck: lameDuck)
    if let keysFailure { rig.source.answer = .failure(keysFailure) }
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [service = rig.service] in await service.run() }
      do {
        try await body(rig)
      } catch {
        await rig.service.drain(within: .zero)
        throw error
      }
      await rig.service.drain(within: .zero)
    }
  }

  private init(spoolSize: Int, lameDuck: Duration) async throws {
    apple = SimulatedApple(
      ring: Self.ring, issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { Self.now })
    source = try KeysSource(Self.ring.keys)
    files = TemporaryDirectory()
    let certificate = files.write("certificate.pem", Self.certificate.certificatePEM)
    var settings = IngressSettings(
      listen: .loopback(port: 0), path: Self.path,
      tls: TLSServerConfiguration(
        certificateFile: certificate, privateKeyFile: files.write("key.pem", Self.certificate.privateKeyPEM)),
      admin: .loopback(port: 0), sharesPort: false,
      limits: HTTPServerLimits(head: 8192, fields: 64, body: 16_384, connections: 64, connectionsPerAddress: 64),
      deadlines: HTTPServerDeadlines(
        handshake: .seconds(600), head: .seconds(600), body: .seconds(600), idle: .seconds(600), request: .seconds(600)),
      spool: SpoolSettings(directory: files.path, size: spoolSize, after: .seconds(600)),
      duplicates: DuplicatesSettings(number: 1000, time: .seconds(3600)), publishDeadline: .seconds(60),
      drainDeadline: .seconds(5))
    settings.lameDuck = lameDuck
    let registry = MetricsRegistry()
    // A key that is not there is asked for again at once; a source that failed is left alone for longer than any test.
    let keys = AppleKeys(
      from: source, cache: nil,
      pace: FetchPace(
        refresh: .seconds(3600), pause: .nanoseconds(1), firstRetry: .seconds(3600), longestRetry: .seconds(3600)),
      alarm: SystemAlarmClock(), now: { [clock] in clock.now }, jitter: { 0 },
      metrics: AppleKeysMetrics(registry, now: { [clock] in clock.now }), logger: lines.logger())
    let publisher = try await EventPublisher(
      settings, log: log, registry: registry, logger: lines.logger(), now: { [clock] in clock.now })
    service = try IngressService(
      settings,
      verifier: NotificationVerifier(
        issuer: AppleNotification.appleIssuer, teams: Self.teams, clockTolerance: .seconds(60)),
      keys: keys, publisher: publisher, registry: registry, logger: lines.logger(), now: { [clock] in clock.now })
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .systemAnd(file: certificate), proxy: .none, connectTimeout: .seconds(300),
        maximumConnections: 8, maximumRequests: 64))
  }

  /// What a test has Apple sign.
  func sign(
    _ type: NotificationType, for audience: String = app, _ faults: Fault...
  ) throws -> SignedNotification {
    try apple.sign(type, of: Self.person, for: audience, faults: faults)
  }

  /// The body of a notification with parts that Apple would never write, signed with Apple's key.
  func body(header: String? = nil, signedBy key: SigningKey? = nil, claims: JSONValue) throws -> [UInt8] {
    let key = key ?? apple.ring.keys[0]
    let header = header ?? #"{"kid":"\#(key.kid)","alg":"RS256"}"#
    let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(claims.bytes)
    let jws = signed + "." + Base64URL.encode(try key.privateKey.signRS256(Array(signed.utf8)))
    return (["payload": .string(jws)] as JSONValue).bytes
  }

  /// The same with one character of its claims changed.
  func tampered(_ body: [UInt8]) -> [UInt8] {
    var body = body
    guard let dot = body.firstIndex(of: UInt8(ascii: ".")) else { return [] }
    body[dot + 40] = body[dot + 40] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
    return body
  }

  /// Claims as Apple writes them.
  func claims(
    audience: JSONValue = .string(app), jti: String = "S25cB0PbHs6y97gYYmgydQ", events: JSONValue,
    issuedAfter seconds: Int64 = -10, validFor lifetime: Int64 = 86_400
  ) -> JSONValue {
    let issued = Self.now.milliseconds / 1000 + seconds
    return [
      "iss": .string(AppleNotification.appleIssuer), "aud": audience, "exp": .integer(issued + lifetime),
      "iat": .integer(issued), "jti": .string(jti), "events": events,
    ]
  }

  /// Delivers a notification.
  @discardableResult
  func post(_ body: [UInt8], to path: String = path) async throws -> HTTPClientResponse {
    try await client.send(
      .post(
        body, to: try url("https", service.address, path), headers: [], isRepeatable: true, within: .seconds(300),
        maximumBodySize: 4096)
    )
  }

  /// Asks where notifications are delivered.
  func get(_ path: String) async throws -> HTTPClientResponse {
    try await client.send(
      .get(try url("https", service.address, path), within: .seconds(300), maximumBodySize: 4096))
  }

  /// Asks as operators do.
  func administration(_ path: String) async throws -> (status: Int, text: String) {
    let response = try await client.send(
      .get(try url("http", service.administrationAddress, path), within: .seconds(300), maximumBodySize: 1 << 20))
    return (response.status, String(decoding: response.body, as: UTF8.self))
  }

  /// The value of a metric; nil where there is none of that name.
  func metric(_ name: String) async throws -> Int? {
    let text = try await administration("/metrics").text
    return text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap { Int($0.dropFirst(name.count + 1)) }
  }

  private func url(_ scheme: String, _ address: SocketAddress, _ path: String) throws -> HTTPClientURL {
    try #require(HTTPClientURL("\(scheme)://\(address)\(path)"))
  }

  // Made once: keys take longer than most tests.
  private nonisolated static let ring = made { try KeyRing(generating: 2) }
  private nonisolated static let certificate = made {
    // Valid by the rig's clock, which stands still, and by the client's.
    let moments = [now.milliseconds / 1000, Timestamp.now.milliseconds / 1000].sorted()
    return try SelfSignedCertificate(
      for: ["127.0.0.1"], validFrom: moments[0] - 3600, seconds: moments[1] - moments[0] + 86_400)
  }
}

/// What a test cannot do without.
private func made<Value>(_ make: () throws -> Value) -> Value {
  do { return try make() } catch { fatalError("\(error)") }
}
