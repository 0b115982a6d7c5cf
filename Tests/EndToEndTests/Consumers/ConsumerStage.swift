import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import Configuration
import ConsumerSupport
import Cryptography
import EventLoop
import Foundation
import Glibc
import HTTPClient
import Kafka
import TestSupport
import Testing
import TransparencyLog

/// Everything around the consumers as programs: a broker of their own with the topics, an account store, a shop from
/// which people are erased, and the file that configures all programs. What is started here is killed with it.
@Loop
final class ConsumerStage {
  let broker: RealBroker
  let apple: AppleSide
  let files: TemporaryDirectory
  let shop: Shop
  /// The account store, beside the programs.
  private(set) var store: any AccountStore
  /// What mailers have to show, and applications.
  let token = "a-token-of-at-least-thirty-two-characters"
  /// Who signs the audit log.
  let auditKey: NoteSigner
  /// Where the audit log is.
  var auditLog: String { files.path + "/audit-log" }
  /// What every program's environment has.
  var environment: [String: String]
  /// How the account store is opened.
  let settings: StoreSettings
  /// Signs as Apple does what no simulated Apple tells; its key is on the topic of keys.
  let signer: EventSigner
  private let endpoints: AppleTokenEndpoints
  private let configuration: String
  private var programs: [RunningProgram] = []

  /// What differs between tests.
  struct Form {
    /// libpq's words for a database that holds the store; nil for SQLite.
    var postgreSQL: String?
    /// What a person who withdraws consent is erased from.
    var onConsentRevoked = "[shop]"
    /// A target beside the shop, in YAML.
    var target = ""
    /// How long a member that is silent stays in its group.
    var session = Duration.seconds(45)
    var partitions = 3
    /// Whether the signer's key is on its topic from the start.
    var hasKey = true
  }

  /// Makes topics and store, as an operator does, and runs `body`.
  static func run(
    _ broker: RealBroker, _ apple: AppleSide, in files: TemporaryDirectory, _ form: Form = Form(),
    _ body: @Loop (ConsumerStage) async throws -> Void
  ) async throws {
    let stage = try await ConsumerStage(broker, apple, files, form)
    let result: Result<Void, any Error>
    do { result = .success(try await body(stage)) } catch { result = .failure(error) }
    for program in stage.programs { await program.kill() }
    await stage.store.close()
    try result.get()
  }

  /// The same on a broker of its own, with a simulated Apple that is a program.
  static func run(
    in files: TemporaryDirectory = TemporaryDirectory(), _ form: Form = Form(),
    _ body: @Loop (ConsumerStage, SimulatorProgram) async throws -> Void
  ) async throws {
    try await SimulatorProgram.run(in: files) { simulator in
      try await run(try await RealBroker(), simulator.side, in: files, form) { stage in try await body(stage, simulator)
      }
    }
  }

  private init(_ broker: RealBroker, _ apple: AppleSide, _ files: TemporaryDirectory, _ form: Form) async throws {
    (self.broker, self.apple, self.files) = (broker, apple, files)
    (shop, signer) = (try Shop(files.path + "/shop.sqlite"), try EventSigner())
    // A folder of its own, whose disk can be full.
    try #require(unsafe mkdir(files.path + "/store", 0o700) == 0)
    _ = files.write("AuthKey.p8", apple.key.privateKeyPEM)
    _ = files.write("email-relay-token", token)
    if let connection = form.postgreSQL { _ = files.write("postgresql", connection) }
    let (signer, privateKey) = try NoteSigner.generate(name: "example.com/audit")
    auditKey = signer
    _ = files.write("audit-key", privateKey)
    configuration = Self.configuration(broker, apple, form, signer.key, token)
    environment = ["SIWA_CONFIG": files.write("siwa.yaml", configuration)]
    endpoints = try Self.endpoints(apple)

    let key = files.path + "/master-key"
    for words in [
      ["store", "create-key", key], ["store", "begin"], ["audit", "begin"],
      ["topics", "create", "--replication", "1", "--partitions", "\(form.partitions)"],
    ] {
      let made = try await RunningProgram.run("siwa", words, environment) { program in
        (try await program.untilEnd(), program.errors)
      }
      try #require(made.0 == .exit(0), "\(words): \(made.1)")
    }
    settings = StoreSettings(
      database: form.postgreSQL.map { .postgresql(Secret($0), connections: 2) }
        ?? .sqlite(path: files.path + "/store/store.sqlite"), masterKeyFile: key)
    store = try await settings.open()
    if form.hasKey { try await send([self.signer.keyRecord]) }
  }

  private static func configuration(
    _ broker: RealBroker, _ apple: AppleSide, _ form: Form, _ auditKey: VerifierKey,
    _ token: String
  ) -> String {
    let retries = "retries: { first: 100ms, longest: 1s }"
    let session = form.session.components.seconds * 1000
    return """
      teams:
        \(AppleSide.team):
          audiences: [\(AppleSide.app)]
          key-id: \(apple.key.id)
          private-key: AuthKey.p8
          erase: { consent-revoked: \(form.onConsentRevoked) }
      apple:
        issuer: \(AppleNotification.appleIssuer)
        keys: \(apple.origin)/auth/keys
        keys-file: apple-keys.json
        token: \(apple.origin)/auth/token
        revoke: \(apple.origin)/auth/revoke
        trusted-ca: \(apple.certificate)
        deadline: 60s
      kafka: { bootstrap.servers: "\(broker.bootstrapServers)", session.timeout.ms: \(session) }
      ingress:
        listen: "127.0.0.1:0"
        admin: "127.0.0.1:0"
        path: \(Stage.path)
        certificate: \(apple.certificate)
        private-key: \(apple.privateKey)
        spool: { directory: spool }
        deadlines: { handshake: 5m, head: 5m, body: 5m, request: 5m }
      store: { \(form.postgreSQL == nil ? "sqlite: store/store.sqlite" : "postgresql: postgresql"), master-key: master-key }
      token-revoker: { admin: "127.0.0.1:0", drain: 300s, concurrency: 4, \(retries) }
      data-eraser:
        admin: "127.0.0.1:0"
        drain: 300s
        \(retries)
        targets:
          shop:
      \(Shop.target)
      \(form.target)
      email-relay: { admin: "127.0.0.1:0", drain: 300s, listen: "127.0.0.1:0", token: email-relay-token, \(retries) }
      accounts:
        listen: "127.0.0.1:0"
        admin: "127.0.0.1:0"
        certificate: \(apple.certificate)
        private-key: \(apple.privateKey)
        drain: 300s
        callers: { shop: { clients: [\(AppleSide.app)], tokens: [\(SHA256.digest(of: Array(token.utf8)))] } }
      audit: { log: audit-log, key: "\(auditKey)" }
      audit-log:
        directory: audit-log
        origin: \(auditKey.name)
        private-key: audit-key
        interval: 100ms
        drain: 300s
        admin: "127.0.0.1:0"
        listen: "127.0.0.1:0"

      """
  }

  /// Apple's endpoints in the name of the team's app.
  private static func endpoints(_ apple: AppleSide) throws -> AppleTokenEndpoints {
    let key = TeamKey(
      team: try #require(TeamID(AppleSide.team)), id: try #require(KeyID(apple.key.id)),
      privateKey: try P256PrivateKey(pem: apple.key.privateKeyPEM))
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .systemAnd(file: apple.certificate), proxy: .none,
        connectTimeout: .seconds(300), maximumConnections: 8, maximumRequests: 64))
    return AppleTokenEndpoints(
      token: try #require(HTTPClientURL("\(apple.origin)/auth/token")),
      revocation: try #require(HTTPClientURL("\(apple.origin)/auth/revoke")), client: client,
      secrets: ClientSecrets(
        keys: [try #require(ClientID(AppleSide.app)): key], audience: AppleNotification.appleIssuer,
        lifetime: .seconds(3600), now: { .now }),
      deadline: .seconds(300))
  }

  // MARK: Records

  /// The record of an event as consumers believe it: signed, or asked for with the store's key.
  func record(of event: AccountEvent) throws -> KafkaRecord { try Self.record(of: event, signer, store) }

  /// The same on any thread.
  nonisolated static func record(
    of event: AccountEvent, _ signer: EventSigner, _ store: any AccountStore
  ) throws -> KafkaRecord {
    event.kind == .accountDeletionRequested ? .request(event, store) : try signer.record(of: event)
  }

  /// Puts records onto their topics, one after the other.
  func send(_ records: [KafkaRecord]) async throws {
    let producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), deadline: .seconds(300),
      log: { _ in })
    for record in records { _ = try await producer.send(record) }
    await producer.close(within: .seconds(10))
  }

  // MARK: People

  /// What somebody is called.
  nonisolated static func account(_ person: Person) throws -> Account {
    Account(team: try #require(TeamID(AppleSide.team)), subject: try #require(AppleSubject(person.subject)))
  }

  /// Somebody signed in: the app exchanges the code, and keeps the token. Returns it.
  @discardableResult
  func signIn(_ person: Person, code: String, at time: Timestamp) async throws -> RefreshToken {
    let client = try #require(ClientID(AppleSide.app))
    let grant = try await endpoints.exchange(
      try #require(AuthorizationCode(code)), redirectURI: nil, by: client)
    let granted: GrantedTokens? = if case .granted(let tokens) = grant { tokens } else { nil }
    let token = try #require(granted?.refreshToken)
    _ = try await store.recordSignIn(
      try Self.account(person), at: time,
      tokens: [NewToken(kind: .refresh, client: client, value: try #require(SecretToken(token.text)))])
    return token
  }

  /// Whether Apple still knows the token.
  func isGood(_ token: RefreshToken) async throws -> Bool {
    try await endpoints.validate(token, of: try #require(ClientID(AppleSide.app))) != .invalid
  }

  /// Puts another store in the store's place, while nobody uses it.
  func replaceStore(_ body: @Loop () async throws -> Void) async throws {
    await store.close()
    try await body()
    store = try await settings.open()
  }

  // MARK: Programs

  /// Runs `siwa` to its end.
  func siwa(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await siwa(words)
  }

  /// Runs `siwa` to its end.
  func siwa(_ words: [String]) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", words, environment) { program in
      try await program.outcome()
    }
  }

  /// Starts a member of a consumer's group.
  func start(_ consumer: ConsumerName, _ changes: [String: String] = [:]) async throws -> RunningMember {
    try await RunningMember(try launch("siwa-\(consumer)", changes), of: consumer)
  }

  /// Begins a log beside the one that the stage has, perhaps on a disk of its own.
  func beginAuditLog(_ changes: [String: String], on disk: SmallDisk? = nil) async throws {
    let program = try launch("siwa", changes, through: disk?.entrance ?? [], ["audit", "begin"])
    try #require(try await program.untilEnd() == .exit(0), "\(program.errors)")
  }

  /// Starts the audit log, perhaps so that it finds a disk of its own.
  func startAuditLog(_ changes: [String: String] = [:], on disk: SmallDisk? = nil) async throws -> RunningAuditLog {
    try await RunningAuditLog(try launch("siwa-audit-log", changes, through: disk?.entrance ?? []))
  }

  /// Has these cosign the audit log when it is started next, and perhaps somebody who is not there.
  func haveWitnessed(by witnesses: [TestWitness], andNobodyAt address: String? = nil) throws {
    var lines = witnesses.map { witness in
      "    \(witness.name): { url: \"\(witness.prefix)\", key: \"\(witness.key)\" }\n"
    }
    if let address {
      let key = try Cosigner(name: "witness.example/nobody", seed: [UInt8](repeating: 99, count: 32)).key
      lines.append("    nobody: { url: \"\(address)\", key: \"\(key)\" }\n")
    }
    _ = files.write("siwa.yaml", configuration + "  witnesses:\n\(lines.joined())")
  }

  /// Has a program sign the audit log when it is started next, which is nowhere told the key any more.
  func haveSigned() throws -> SigningScript {
    let key = files.path + "/audit-key"
    let script = try SigningScript(of: String(contentsOfFile: key, encoding: .utf8), in: files, named: "audit-log")
    try FileManager.default.removeItem(atPath: key)
    let signer = "signer: [\"\(script.path)\"]\n  public-key: \"\(auditKey.key)\""
    _ = files.write("siwa.yaml", configuration.replacing("private-key: audit-key", with: signer))
    return script
  }

  /// Starts the ingress.
  func startIngress(_ changes: [String: String] = [:]) async throws -> RunningIngress {
    try await RunningIngress(
      try launch("siwa-ingress", changes),
      HTTPClient(
        HTTPClientConfiguration(
          userAgent: "tests", trustAnchors: .systemAnd(file: apple.certificate), proxy: .none,
          connectTimeout: .seconds(300), maximumConnections: 8, maximumRequests: 64)))
  }

  /// Starts one of our programs, perhaps by way of another one.
  func launch(
    _ name: String, _ changes: [String: String] = [:], through entrance: [String] = [], _ arguments: [String] = []
  ) throws -> RunningProgram {
    let words = entrance + [RunningProgram.path(of: name)] + arguments
    let program = try RunningProgram(words[0], Array(words.dropFirst()), environment.merging(changes) { $1 })
    programs.append(program)
    return program
  }
}
