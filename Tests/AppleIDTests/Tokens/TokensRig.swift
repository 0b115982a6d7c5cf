import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import TestSupport
import Testing

/// A simulated Apple over real TLS on loopback that knows our team, and our endpoints that lead to it.
@Loop
struct TokensRig {
  let apple: SimulatedApple
  let server: SimulatedAppleServer
  let endpoints: AppleTokenEndpoints
  let key: TeamKey
  let calendar: KeysRig.Calendar
  private let trustAnchors: String

  static let ada = Person(named: "Ada")

  /// Runs `body` while Apple runs. `deadline` is for each request.
  static func run(
    deadline: Duration = .seconds(300), _ body: @Loop (_ rig: TokensRig) async throws -> Void
  ) async throws {
    Signals.block([])  // SIGPIPE must not end the tests
    let directory = TemporaryDirectory()
    let certificate = try SelfSignedCertificate(
      for: ["127.0.0.1"], validFrom: Int64(Date().timeIntervalSince1970) - 60, seconds: 3600)
    let file = directory.write("certificate.pem", certificate.certificatePEM)
    let calendar = KeysRig.Calendar()
    let apple = SimulatedApple(
      ring: try AppleKeysEndpointTests.ring.get(), issuer: AppleNotification.appleIssuer,
      trustAnchors: .systemAnd(file: file), clock: { calendar.now })
    let server = try SimulatedAppleServer(
      apple, port: 0,
      tls: TLSServerConfiguration(
        certificateFile: file, privateKeyFile: directory.write("key.pem", certificate.privateKeyPEM)))
    let rig = try TokensRig(
      apple: apple, server: server, key: try key(of: Forge.team, [Forge.app, Forge.web], at: apple), calendar: calendar,
      trustAnchors: file, deadline: deadline)
    let serving = Task(executorPreference: Loop.executor) { await server.run() }
    do {
      try await body(rig)
    } catch {
      serving.cancel()
      await serving.value
      throw error
    }
    serving.cancel()
    await serving.value
  }

  private init(
    apple: SimulatedApple, server: SimulatedAppleServer, key: TeamKey, calendar: KeysRig.Calendar,
    trustAnchors: String, deadline: Duration
  ) throws {
    (self.apple, self.server, self.key, self.calendar) = (apple, server, key, calendar)
    self.trustAnchors = trustAnchors
    endpoints = try Self.endpoints(
      token: server.tokenURL, revocation: server.revocationURL, key: key, trustAnchors: trustAnchors,
      deadline: deadline)
  }

  /// Endpoints with other keys, another clock or another deadline.
  func endpoints(
    _ key: TeamKey, second: TeamKey? = nil, now: Timestamp = Forge.now, deadline: Duration = .seconds(300),
    takenOver: @escaping @Loop @Sendable (KeyTakeover) -> Void = { _ in }
  ) throws -> AppleTokenEndpoints {
    try Self.endpoints(
      token: server.tokenURL, revocation: server.revocationURL, key: key, second: second, trustAnchors: trustAnchors,
      deadline: deadline, now: now, takenOver: takenOver)
  }

  /// Another key that the team has.
  func anotherKey() throws -> TeamKey { try Self.key(of: Forge.team, [Forge.app, Forge.web], at: apple) }

  /// A new key of a team's with these apps.
  static func key(of team: TeamID, _ clients: [ClientID], at apple: SimulatedApple) throws -> TeamKey {
    let downloaded = try apple.enroll(team: team.text, clients: clients.map(\.text))
    return TeamKey(
      team: team, id: try #require(KeyID(downloaded.id)), privateKey: try P256PrivateKey(pem: downloaded.privateKeyPEM))
  }

  /// The migration endpoint, asked for the team of a key by the calendar of the rig.
  func migration(
    _ key: TeamKey, second: TeamKey? = nil, deadline: Duration = .seconds(300), lifetime: Duration = .seconds(3600)
  ) throws -> AppleMigrationEndpoint {
    AppleMigrationEndpoint(
      token: try #require(HTTPClientURL(server.tokenURL)), migration: try #require(HTTPClientURL(server.migrationURL)),
      client: Self.client(trustAnchors),
      secrets: ClientSecrets(
        keys: [Forge.app: key], secondKeys: second.map { [Forge.app: $0] } ?? [:],
        audience: AppleNotification.appleIssuer, lifetime: lifetime, now: { [calendar] in calendar.now }),
      deadline: deadline, now: { [calendar] in calendar.now })
  }

  /// Connections to a server whose certificate is in the file.
  static func client(_ trustAnchors: String) -> HTTPClient {
    HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-tests", trustAnchors: .systemAnd(file: trustAnchors), proxy: .none,
        connectTimeout: .seconds(300), maximumConnections: 4, maximumRequests: 16))
  }

  static func endpoints(
    token: String, revocation: String, key: TeamKey, second: TeamKey? = nil, trustAnchors: String, deadline: Duration,
    now: Timestamp = Forge.now, takenOver: @escaping @Loop @Sendable (KeyTakeover) -> Void = { _ in }
  ) throws -> AppleTokenEndpoints {
    AppleTokenEndpoints(
      token: try #require(HTTPClientURL(token)), revocation: try #require(HTTPClientURL(revocation)),
      client: client(trustAnchors),
      secrets: ClientSecrets(
        keys: [Forge.app: key, Forge.web: key], secondKeys: second.map { [Forge.app: $0, Forge.web: $0] } ?? [:],
        audience: AppleNotification.appleIssuer, lifetime: .seconds(3600), now: { now }, takenOver: takenOver),
      deadline: deadline)
  }

  /// The code of a new sign-in of Ada's.
  func code(for client: ClientID = Forge.app) throws -> AuthorizationCode {
    try #require(AuthorizationCode(try apple.signIn(Self.ada, to: client.text)))
  }

  /// The tokens of a new sign-in of Ada's.
  func tokens(for client: ClientID = Forge.app) async throws -> (access: AccessToken, refresh: RefreshToken) {
    let grant = try await endpoints.exchange(try code(for: client), redirectURI: nil, by: client)
    guard case .granted(let tokens) = grant else {
      Issue.record("no tokens")
      throw CancellationError()
    }
    return (tokens.accessToken, try #require(tokens.refreshToken))
  }
}
