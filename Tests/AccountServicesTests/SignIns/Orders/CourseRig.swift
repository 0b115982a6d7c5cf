import AccountEvents
import AccountStore
import AppleID
import Configuration
import Cryptography
import EventLoop
import Glibc
import HTTPClient
import HTTPServer
import Telemetry
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleSimulator

/// What courses share: a store, Apple's keys, and a door to the Apple of each.
@Loop
final class CourseRig {
  /// A database that the store may be in.
  enum Database: String, CaseIterable {
    case sqlite, postgresql

    static var present: [Database] { PostgreSQLServer.programs == nil ? [.sqlite] : allCases }
  }

  /// When each course begins, by our clock: not at the start of a second.
  nonisolated static let begin = Timestamp.event(100_000) + .milliseconds(870)
  private nonisolated static let ring = Result { try KeyRing(generating: 1) }
  nonisolated static let app = "com.example.app"

  let store: any AccountStore
  let (team, client): (TeamID, ClientID)
  let logger = Logger(level: .error, format: .text, sink: LogSink { _ in })
  private let secrets: ClientSecrets
  private let http = HTTPClient(
    HTTPClientConfiguration(
      userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 16,
      maximumRequests: 64))
  /// Where each course's Apple begins.
  private let apple: SimulatedApple
  private var courses: [String: Course] = [:]
  private var origin = ""
  private var keys: AppleKeys?

  /// Runs `body` with an empty store.
  static func run(_ database: Database, _ body: @Loop (CourseRig) async throws -> Void) async throws {
    let files = TemporaryDirectory()
    let masterKey = files.write("master-key", try MasterKey.newText())
    try #require(unsafe chmod(masterKey, 0o600) == 0)
    let place: StoreSettings.Database =
      switch database {
      case .sqlite: .sqlite(path: files.path + "/store.sqlite")
      case .postgresql: .postgresql(Secret(try await PostgreSQLServer.shared().makeDatabase()), connections: 4)
      }
    let settings = StoreSettings(database: place, masterKeyFile: masterKey)
    _ = try await settings.administration().begin()
    try await settings.use { store in
      let rig = try CourseRig(store)
      let door = try HTTPServer(.plainOnLoopback) { request in await rig.answer(request) }
      rig.origin = "http://\(door.address)"
      let keys = try rig.appleKeys(keptIn: files)
      rig.keys = keys
      try await withThrowingTaskGroup { group in
        group.addTask(executorPreference: Loop.executor) { await door.run() }
        group.addTask(executorPreference: Loop.executor) { await keys.run() }
        defer { group.cancelAll() }
        try await until { !keys.current.keyIDs.isEmpty }
        try await body(rig)
      }
    }
  }

  private init(_ store: any AccountStore) throws {
    self.store = store
    (team, client) = (try #require(TeamID("A1B2C3D4E5")), try #require(ClientID(Self.app)))
    apple = SimulatedApple(
      ring: try Self.ring.get(), issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { .now })
    let key = try apple.enroll(team: team.text, clients: [Self.app])
    let own = TeamKey(
      team: team, id: try #require(KeyID(key.id)), privateKey: try P256PrivateKey(pem: key.privateKeyPEM))
    secrets = ClientSecrets(
      keys: [client: own], audience: AppleNotification.appleIssuer, lifetime: .seconds(86_400),
      now: { Self.begin - .seconds(3600) })
  }

  private func appleKeys(keptIn files: TemporaryDirectory) throws -> AppleKeys {
    AppleKeys(
      AppleSettings(
        issuer: AppleNotification.appleIssuer, keysURL: try #require(HTTPClientURL(origin + "/auth/keys")),
        keysFile: files.path + "/keys.json", keysRefresh: .seconds(3600), keysPause: .seconds(1),
        deadline: .seconds(300), clockTolerance: .seconds(60), trustedCA: nil, proxy: .none),
      userAgent: "tests", registry: MetricsRegistry(), logger: logger)
  }

  /// An Apple of a course's own, that knows our app.
  func newApple(at clock: @escaping @Sendable () -> Timestamp) -> SimulatedApple {
    let own = SimulatedApple(ring: apple.ring, issuer: apple.issuer, trustAnchors: .system, clock: clock)
    own.developers = apple.developers
    own.authorizations.keepsCodes = true
    return own
  }

  /// Apple's endpoints, as somebody reaches them in a course.
  func endpoints(for name: String, in course: String) throws -> AppleTokenEndpoints {
    AppleTokenEndpoints(
      token: try #require(HTTPClientURL("\(origin)/\(course)/\(name)/token")),
      revocation: try #require(HTTPClientURL("\(origin)/\(course)/\(name)/revoke")), client: http, secrets: secrets,
      deadline: .seconds(240))
  }

  /// Who judges identity tokens, by the course's clock.
  func identityTokens(at now: @escaping @Sendable () -> Timestamp) throws -> IdentityTokens {
    IdentityTokens(
      IdentityTokenVerifier(
        issuer: AppleNotification.appleIssuer, teams: [client: team], clockTolerance: .seconds(60)),
      try #require(keys), now: now)
  }

  /// Runs a course to its end, and returns what is wrong about it.
  func run(_ plan: CoursePlan, named name: String) async throws -> [String] {
    let course = try await Course(self, plan, named: name)
    courses[name] = course
    defer { courses[name] = nil }
    return try await course.run()
  }

  /// `/COURSE/NAME/token` and `/COURSE/NAME/revoke` are the endpoints of a course's Apple.
  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let words = request.path.split(separator: "/").map(String.init)
    guard words.count == 3, let course = courses[words[0]] else { return await apple.answer(request) }
    return await course.answer(request, to: words[1], isRevocation: words[2] == "revoke")
  }
}
