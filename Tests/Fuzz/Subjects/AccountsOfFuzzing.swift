import AccountEvents
import AccountStore
import Cryptography
import Dispatch
import EventLoop
import Foundation
import Glibc
import HTTPClient
import Kafka
import Synchronization
import Telemetry

@testable import AccountServices
@testable import AppleID
@testable import AppleSimulator
@testable import HTTPServer

/// `siwa-accounts` but for its program: the endpoint behind a server on loopback, with a store, a simulated Apple, and a
/// person whom it knows. It is made once, and what it is asked changes it.
final class AccountsOfFuzzing: Sendable {
  static let shared = Result { try wait { try await make() } }

  /// What the application shows that asks, and its app.
  private static let (token, app) = ("token-of-the-shop", "com.example.app")
  /// What is not made of our bytes in this time hangs.
  private static let patience = timeval(tv_sec: 20, tv_usec: 0)

  private let apple: SimulatedApple
  private let port: UInt16
  /// What stands for what is another one in each process.
  private let words: [(name: String, value: String)]

  private init(_ apple: SimulatedApple, _ port: UInt16, _ words: [(name: String, value: String)]) {
    (self.apple, self.port, self.words) = (apple, port, words)
  }

  // MARK: One input

  /// The input with `{account}`, `{deletion}` and `{identity}` filled in, a new code for `{code}`, and for `{length}` how much
  /// follows the first head.
  func filled(_ bytes: [UInt8]) throws -> [UInt8] {
    guard bytes.contains(UInt8(ascii: "{")) else { return bytes }
    var filled = bytes
    for (name, value) in words { filled.replace(Array(name.utf8), with: Array(value.utf8), maxReplacements: 4) }
    if filled.contains(Array("{code}".utf8)) {
      let code = try Self.wait { [apple] in try apple.signIn(Person(named: "Ada"), to: Self.app) }
      filled.replace(Array("{code}".utf8), with: Array(code.utf8))
    }
    if let end = filled.firstRange(of: Array("\r\n\r\n".utf8)) {
      let length = "\(filled.count - end.upperBound)"
      filled.replace(Array("{length}".utf8), with: Array(length.utf8), maxReplacements: 1)
    }
    return filled
  }

  /// All that is answered to these bytes, on a connection of their own; of a stream of events its head.
  func answers(to bytes: [UInt8]) throws(BrokenPromise) -> [UInt8] {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(number) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try promise("the server takes connections", connected == 0)
    var patience = Self.patience
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      unsafe setsockopt(number, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    var place = 0
    while place < bytes.count {
      let sent = unsafe bytes[place...].withUnsafeBytes { rest in
        unsafe send(number, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
      }
      if sent <= 0 { break }  // It has heard enough.
      place += sent
    }
    shutdown(number, Int32(SHUT_WR))
    var answers: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe recv(number, &piece, piece.count, 0)
      try promise("the connection comes to its end", count >= 0 || errno != EAGAIN)
      guard count > 0 else { return answers }
      answers += piece[..<count]
      if answers.contains(Array("text/event-stream".utf8)) { return answers }
    }
  }

  // MARK: What there is

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private static func known<Value>(_ value: Value?, _ name: String) throws -> Value {
    guard let value else { throw Failure(description: name) }
    return value
  }

  /// Starts all of it, which lives as long as the process.
  @Loop
  private static func make() async throws -> AccountsOfFuzzing {
    let logger = Logger(level: .error, format: .text, sink: LogSink { _ in })
    let (team, client) = (try known(TeamID("A1B2C3D4E5"), "team"), try known(ClientID(app), "app"))
    let apple = SimulatedApple(
      ring: try KeyRing(generating: 1), issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { .now })
    let simulator = try SimulatedAppleServer(apple, port: 0, tls: nil)
    Task(executorPreference: Loop.executor) { await simulator.run() }
    let folder = try Folder()
    let keys = AppleKeys(
      AppleSettings(
        issuer: AppleNotification.appleIssuer, keysURL: try known(HTTPClientURL(simulator.keysURL), "keys"),
        keysFile: folder.path + "/keys.json", keysRefresh: .seconds(86_400), keysPause: .seconds(1),
        deadline: .seconds(10), clockTolerance: .seconds(60), trustedCA: nil, proxy: .none),
      userAgent: "fuzz", registry: MetricsRegistry(), logger: logger)
    Task(executorPreference: Loop.executor) { await keys.run() }
    let key = try known(MasterKey(try SecureRandom.bytes(32)), "key")
    try await SQLiteAccountStore.begin(folder.path + "/store.sqlite", key)
    let store = try await SQLiteAccountStore.open(folder.path + "/store.sqlite", key)

    let developer = try apple.enroll(team: team.text, clients: [app])
    let teamKey = TeamKey(
      team: team, id: try known(KeyID(developer.id), "key"),
      privateKey: try P256PrivateKey(pem: developer.privateKeyPEM))
    let endpoints = AppleTokenEndpoints(
      token: try known(HTTPClientURL(simulator.tokenURL), "token"),
      revocation: try known(HTTPClientURL(simulator.revocationURL), "revoke"),
      client: HTTPClient(
        HTTPClientConfiguration(
          userAgent: "fuzz", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(10), maximumConnections: 8,
          maximumRequests: 64)),
      secrets: ClientSecrets(
        keys: [client: teamKey], audience: AppleNotification.appleIssuer, lifetime: .seconds(86_400), now: { .now }),
      deadline: .seconds(10))
    let sight = AccountSight(teams: [client: team], groups: ConsentGroups([:]))
    let endpoint = endpoint(store, endpoints, keys, sight, logger)

    let ada = Person(named: "Ada")
    let id = try await signIn(ada, apple, store, client, team)
    let bob = try await signIn(Person(named: "Bob"), apple, store, client, team)
    let deletion = try known(
      try await store.requestDeletion(
        of: Account(team: team, subject: try known(AppleSubject(Person(named: "Bob").subject), "subject")), in: client,
        as: try known(EventID("deletion-of-bob"), "event"), at: .now), "deletion")
    let identity = try apple.identityToken(of: ada, for: app, nonce: nil, binding: ("at_hash", "a"))
    var configuration = HTTPServerConfiguration(
      address: .loopback(port: 0), tls: nil,
      limits: HTTPServerLimits(
        head: 16_384, fields: 64, body: 2 * SignInRequest.largestBody, connections: 64, connectionsPerAddress: 64),
      // Most inputs are cut off somewhere, and nobody is to wait for the rest.
      deadlines: HTTPServerDeadlines(
        handshake: .seconds(1), head: .milliseconds(100), body: .milliseconds(100), idle: .milliseconds(100),
        request: .seconds(10)), sharesPort: false)
    configuration.refusal = { Problem($0).response }
    let server = try HTTPServer(configuration) { request in await endpoint.respond(to: request) }
    Task(executorPreference: Loop.executor) { await server.run() }
    while keys.current.keyIDs.isEmpty { try await Loop.sleep(for: .milliseconds(1)) }
    return AccountsOfFuzzing(
      apple, server.address.port,
      [
        ("{account}", id.description), ("{bob}", bob.description), ("{deletion}", deletion.id.text),
        ("{identity}", identity), ("{sub}", ada.subject),
      ])
  }

  @Loop
  private static func endpoint(
    _ store: any AccountStore, _ endpoints: AppleTokenEndpoints, _ keys: AppleKeys, _ sight: AccountSight,
    _ logger: Logger
  ) -> AccountsEndpoint {
    let (registry, clients) = (MetricsRegistry(), Set([ClientID(app)].compactMap(\.self)))
    let metrics = AccountsMetrics(registry)
    let teams = Dictionary(
      uniqueKeysWithValues: clients.compactMap { client in sight.team(of: client).map { (client, $0) } })
    let verifier = IdentityTokenVerifier(
      issuer: AppleNotification.appleIssuer, teams: teams, clockTolerance: .seconds(60))
    let signIns = SignIns(
      store, endpoints, IdentityTokens(verifier, keys, now: { .now }), ConsentGroups([:]), metrics: metrics,
      logger: logger, now: { .now }, random: { 0 })
    let events = EventStreams(
      EventFeed({ () throws(KafkaError) in EmptyTopic() }, logger: logger),
      sight, limits: .init(perCaller: 1000, connections: 1000, descriptors: 10_000),
      metrics: EventStreamMetrics(registry),
      logger: logger, identify: { store.id(of: $0) })
    Task(executorPreference: Loop.executor) { await events.run() }
    let shop = AccountsSettings.Caller(
      name: "shop", clients: clients, tokens: [SHA256.digest(of: Array(token.utf8))])
    return AccountsEndpoint(
      Callers([shop], rate: 1_000_000), signIns,
      Deletions(store, sight, logger: logger, now: { .now }, isAhead: { _ in false }, announce: {}),
      AccessTokens(store, endpoints, sight, logger: logger), events, store, sight, auditLog: nil, metrics: metrics,
      logger: logger)
  }

  /// Somebody who is known, with a token that is good.
  @Loop
  private static func signIn(
    _ person: Person, _ apple: SimulatedApple, _ store: any AccountStore, _ client: ClientID, _ team: TeamID
  ) async throws -> AccountID {
    let code = try apple.signIn(person, to: app)
    let tokens = try apple.authorizations.redeem(code, by: app, redirectURI: nil, at: .now)
    let value = try known(tokens?.refresh.flatMap { SecretToken($0) }, "token")
    let account = Account(team: team, subject: try known(AppleSubject(person.subject), "subject"))
    let token = NewToken(kind: .refresh, client: client, value: value)
    _ = try await store.recordSignIn(account, at: .now - .seconds(60), tokens: [token])
    return store.id(of: account)
  }

  /// In memory, where there is a disk of it; gone with the process, or with the next one where libFuzzer has ended it.
  private struct Folder {
    let path: String

    private static let name = "siwa-fuzz-"
    private static let root = unsafe access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()

    init() throws {
      for name in try FileManager.default.contentsOfDirectory(atPath: Self.root) where name.hasPrefix(Self.name) {
        let owner = name.dropFirst(Self.name.count)
        if !FileManager.default.fileExists(atPath: "/proc/\(owner)") {
          try FileManager.default.removeItem(atPath: "\(Self.root)/\(name)")
        }
      }
      path = Self.own
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      atexit {
        // There is nobody left who could be told.
        try? FileManager.default.removeItem(atPath: Folder.own)
      }
    }

    private static var own: String { "\(root)/\(name)\(getpid())" }
  }

  /// Waits for what happens on the loop.
  private static func wait<Value: Sendable>(_ body: @escaping @Loop @Sendable () async throws -> Value) throws -> Value
  {
    let result = Mutex<Result<Value, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Task(executorPreference: Loop.executor) {
      let value: Result<Value, any Error>
      do { value = .success(try await body()) } catch { value = .failure(error) }
      result.withLock { $0 = value }
      isDone.signal()
    }
    isDone.wait()
    guard let value = result.withLock(\.self) else { preconditionFailure("it was signalled") }
    return try value.get()
  }
}
