import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import ConsumerSupport
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import Kafka
import TestSupport
import Testing

/// The token revoker on a real store, and a simulated Apple over real TLS on loopback; topics and clock are a test's.
@Loop
final class RevokerRig {
  let apple: SimulatedApple
  let cluster = MemoryCluster()
  let captured = CapturedLog()
  private(set) var process: RevokerProcess
  /// What ran before.
  private var ended: [RevokerProcess] = []
  private let files: TemporaryDirectory
  private let server: SimulatedAppleServer
  private let masterKey: MasterKey
  private let groups: ConsentGroups
  /// What no log may hold.
  private var secrets: Set<String> = []

  nonisolated static let team = "A1B2C3D4E5"
  nonisolated static let app = "com.example.app"
  nonisolated static let web = "com.example.web"
  nonisolated static let now = Timestamp.sample(1_800_000_000_000)
  private nonisolated static let ring = Result { try KeyRing(generating: 1) }

  /// Runs `body` while Apple and a revoker run. Whatever the test was, no token and nobody's name is in the log.
  static func run(
    groups: [[String]]? = nil, _ body: @Loop (_ rig: RevokerRig) async throws -> Void
  ) async throws {
    Signals.block([])  // SIGPIPE must not end the tests
    let team = try #require(TeamID(team))
    let named = try groups?.map { Set(try $0.map { try #require(ClientID($0)) }) }
    let rig = try await RevokerRig(ConsentGroups(named.map { [team: $0] } ?? [:]))
    let serving = Task(executorPreference: Loop.executor) { await rig.server.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body(rig)) } catch { result = .failure(error) }
    await rig.process.end()
    serving.cancel()
    await serving.value
    try result.get()
    let log = rig.captured.lines.joined()
    for secret in rig.secrets { #expect(!log.contains(secret), "in the log") }
  }

  private init(_ groups: ConsentGroups) async throws {
    self.groups = groups
    files = TemporaryDirectory()
    let certificate = try SelfSignedCertificate(
      for: ["127.0.0.1"], validFrom: Int64(Date().timeIntervalSince1970) - 60, seconds: 3600)
    let file = files.write("certificate.pem", certificate.certificatePEM)
    apple = SimulatedApple(
      ring: try Self.ring.get(), issuer: AppleNotification.appleIssuer, trustAnchors: .systemAnd(file: file),
      clock: { Self.now })
    server = try SimulatedAppleServer(
      apple, port: 0,
      tls: TLSServerConfiguration(
        certificateFile: file, privateKeyFile: files.write("key.pem", certificate.privateKeyPEM)))
    masterKey = try #require(MasterKey(try SecureRandom.bytes(32)))
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", masterKey)
    let key = try apple.enroll(team: Self.team, clients: [Self.app, Self.web])
    process = RevokerProcess(
      try Self.endpoints(key, server, files.path + "/certificate.pem"), groups, cluster, captured,
      try await SQLiteAccountStore.open(files.path + "/store.sqlite", masterKey))
  }

  /// Apple's endpoints in the name of our apps.
  private static func endpoints(
    _ key: DeveloperKey, _ server: SimulatedAppleServer, _ trustAnchors: String
  ) throws -> AppleTokenEndpoints {
    let key = TeamKey(
      team: try #require(TeamID(team)), id: try #require(KeyID(key.id)),
      privateKey: try P256PrivateKey(pem: key.privateKeyPEM))
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-tests", trustAnchors: .systemAnd(file: trustAnchors), proxy: .none,
        connectTimeout: .seconds(300), maximumConnections: 16, maximumRequests: 64))
    return AppleTokenEndpoints(
      token: try #require(HTTPClientURL(server.tokenURL)),
      revocation: try #require(HTTPClientURL(server.revocationURL)),
      client: client,
      secrets: ClientSecrets(
        keys: [try #require(ClientID(app)): key, try #require(ClientID(web)): key],
        audience: AppleNotification.appleIssuer, lifetime: .seconds(3600), now: { now }),
      deadline: .seconds(300))
  }

  /// Ends the process as it is, without any order, and starts another one on what it has left. `key` is the team's, where
  /// an operator has given it another one. `rereading`: as a new group, from the start of the topic.
  func restart(_ key: DeveloperKey? = nil, rereading: Bool = false) async throws {
    await process.end()
    ended.append(process)
    if rereading { cluster.committed = [:] }
    let endpoints =
      if let key { try Self.endpoints(key, server, files.path + "/certificate.pem") } else { process.endpoints }
    process = RevokerProcess(
      endpoints, groups, cluster, captured, try await SQLiteAccountStore.open(files.path + "/store.sqlite", masterKey))
  }

  /// What somebody is called.
  nonisolated static func account(_ name: String) throws -> Account {
    Account(team: try #require(TeamID(team)), subject: try #require(AppleSubject(Person(named: name).subject)))
  }

  /// Signs somebody in at Apple, and records tokens of these kinds.
  func signIn(
    _ name: String = "ada", at number: Int, to client: String = app, keeping kinds: [NewToken.Kind] = [.refresh]
  ) async throws {
    let client = try #require(ClientID(client))
    let code = try #require(AuthorizationCode(try apple.signIn(Person(named: name), to: client.text)))
    guard case .granted(let grant) = try await process.endpoints.exchange(code, redirectURI: nil, by: client) else {
      Issue.record("no tokens")
      return
    }
    let texts: [NewToken.Kind: String] = [.access: grant.accessToken.text, .refresh: grant.refreshToken?.text ?? ""]
    let tokens = try kinds.map {
      NewToken(kind: $0, client: client, value: try #require(SecretToken(texts[$0] ?? "")))
    }
    _ = try await process.store.recordSignIn(try Self.account(name), at: .event(number), tokens: tokens)
    secrets.formUnion(texts.values)
    secrets.insert(Person(named: name).subject)
    asked = 0
  }

  /// How often Apple was asked for anything since the last sign-in.
  var asked: Int {
    get { apple.tokensAsked + apple.revocationsAsked - before }
    set { before = apple.tokensAsked + apple.revocationsAsked - newValue }
  }
  private var before = 0

  /// Puts an event onto the topic. Its number is its time.
  func happen(
    _ kind: AccountEvent.Kind, _ number: Int, to name: String = "ada", for client: String = app, id: String? = nil
  ) throws {
    let account = try Self.account(name)
    let event = AccountEvent(
      id: try #require(EventID(id ?? "event-\(number)")), team: account.team, audience: try #require(ClientID(client)),
      subject: account.subject, kind: kind, occurredAt: .event(number), issuedAt: .event(number + 5))
    cluster.append(.of(event), to: 0, timestamp: Self.now.milliseconds)
    process.source.wake()
  }

  /// What is held of somebody.
  func tokens(of name: String = "ada") async throws -> [StoredToken] {
    try await process.store.tokens(of: try Self.account(name))
  }

  /// What was said, without whom and when.
  func said() throws -> [String] {
    try cluster.appended(on: Topic.outcomes.name).map { record in
      let outcome = try AccountOutcome(decoding: try #require(record.value))
      return "\(outcome.cause.id) \(outcome.name.rawValue)" + (outcome.reason.map { ": \($0.rawValue)" } ?? "")
    }
  }
}

extension Timestamp {
  /// The time of the event with this number.
  static func event(_ number: Int) -> Timestamp { .sample(1_700_000_000_000 + 1000 * Int64(number)) }
}
