import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import Kafka
import Telemetry
import TransparencyLog

/// siwa-accounts, the three consumers and the audit log in this process, as their programs would run them from one file, and
/// the shop's customers.
@Loop
final class RehearsedServices {
  private static let patience = Duration.seconds(10)
  /// The name of the audit log, under which it is published nowhere.
  private static let origin = "siwa-dev.example/audit-log"

  /// The shop's own data, from which people are erased.
  let customers: Customers
  /// Signs people in.
  let accounts: AccountsService
  /// What the shop shows it.
  let accountsToken: String
  /// What is known of accounts.
  let store: any AccountStore
  /// The file that configures all programs.
  let file: String
  /// Where mailers ask, and what they have to show.
  let relay: (address: String, token: String)
  /// The log of all that came and was done.
  let auditLog: RehearsedAuditLog
  private let revoker: RunningConsumer
  private let eraser: RunningConsumer
  private let mail: RunningConsumer
  private let endpoints: AppleTokenEndpoints
  private let team: TeamID
  private let client: ClientID

  /// Makes store, key and configuration in the folder, and all parts from them. `clients` are the apps of the team: the one
  /// that people of the rounds sign in to, and the shop's.
  init(
    in folder: borrowing ScratchFolder, team: TeamID, clients: (app: ClientID, web: ClientID), apple: SimulatedApple,
    server: SimulatedAppleServer, bootstrapServers: String, relayPort: UInt16
  ) async throws {
    (self.team, client) = (team, clients.app)
    let key = try apple.enroll(team: team.text, clients: [clients.app.text, clients.web.text])
    try folder.write(key.privateKeyPEM, to: "AuthKey.p8")
    try folder.write(try MasterKey.newText(), to: "master-key")
    let (auditSigner, auditKey) = try NoteSigner.generate(name: Self.origin)
    try folder.write("\(auditKey)\n", to: "audit-key")
    let token = try MasterKey.newText()
    try folder.write(token, to: "email-relay-token")
    accountsToken = try .secret()
    customers = try Customers(in: folder.file("shop.sqlite"))
    file = folder.file("siwa.yaml")
    relay = ("http://127.0.0.1:\(relayPort)", token.split(separator: "\n").first.map(String.init) ?? token)
    try folder.write(
      """
      teams:
        \(team):
          audiences: [\(clients.app), \(clients.web)]
          key-id: \(key.id)
          private-key: AuthKey.p8
          erase: { consent-revoked: [] }
      apple:
        issuer: \(AppleNotification.appleIssuer)
        keys: \(server.keysURL)
        keys-file: accounts-apple-keys.json
        token: \(server.tokenURL)
        revoke: \(server.revocationURL)
        trusted-ca: certificate.pem
      # The Kafka inside this process answers who waits for records at the end of that time alone.
      kafka: { bootstrap.servers: "\(bootstrapServers)", fetch.wait.max.ms: 10 }
      store: { sqlite: store.sqlite, master-key: master-key }
      accounts:
        listen: "127.0.0.1:0"
        admin: "127.0.0.1:0"
        certificate: certificate.pem
        private-key: key.pem
        callers:
          shop: { clients: [\(clients.web)], tokens: [\(SHA256.digest(of: Array(accountsToken.utf8)))] }
      token-revoker: { admin: "127.0.0.1:0" }
      data-eraser:
        admin: "127.0.0.1:0"
        targets:
          shop:
            sqlite: shop.sqlite
      \(Customers.erasure)
      email-relay: { admin: "127.0.0.1:0", listen: "127.0.0.1:\(relayPort)", token: email-relay-token }
      audit-log:
        admin: "127.0.0.1:0"
        listen: "127.0.0.1:0"
        directory: audit-log
        origin: \(Self.origin)
        private-key: audit-key
        interval: 100ms
      audit: { log: audit-log, key: "\(auditSigner.key)" }
      log: { level: error, format: text }

      """, to: "siwa.yaml")

    let sources = ConfigurationSources(file: file)
    func load<Value: Configurable>(_ type: Value.Type) throws -> Value {
      try ConfigurationSchema.siwa.load(type, from: sources).value
    }
    let revoking = try load(ConsumerConfiguration<TokenRevokerProgram>.self)
    _ = try await revoking.store.administration().begin()
    store = try await revoking.store.open()
    let logger = Logger(level: revoking.log.level, format: revoking.log.format)
    accounts = try await AccountsService(
      try load(AccountsConfiguration.self), store: store, registry: MetricsRegistry(), logger: logger)
    endpoints = AppleTokenEndpoints(
      revoking.own.apple, teams: revoking.own.teams, concurrency: 4, userAgent: "siwa-dev", now: { .now })
    revoker = try await RunningConsumer(revoking, store: store, registry: MetricsRegistry(), logger: logger)
    eraser = try await RunningConsumer(
      try load(ConsumerConfiguration<DataEraserProgram>.self), store: store, registry: MetricsRegistry(),
      logger: logger)
    mail = try await RunningConsumer(
      try load(ConsumerConfiguration<EmailRelayProgram>.self), store: store, registry: MetricsRegistry(),
      logger: logger)
    let auditing = try load(AuditLogConfiguration.self)
    _ = try LogWriter.begin(in: auditing.audit.directory, origin: auditing.audit.origin)
    auditLog = try await RehearsedAuditLog(auditing, logger: logger)
  }

  /// Runs until `drain` has ended. Returns what made it impossible to go on.
  func run() async -> KafkaError? {
    await withTaskGroup(of: KafkaError?.self) { group in
      for consumer in [revoker, eraser, mail] {
        group.addTask(executorPreference: Loop.executor) { await consumer.run() }
      }
      group.addTask(executorPreference: Loop.executor) { [auditLog] in
        await auditLog.run()
        return nil
      }
      group.addTask(executorPreference: Loop.executor) { [accounts] in
        await accounts.run()
        return nil
      }
      var failure: KafkaError?
      while let result = await group.next() { failure = failure ?? result }
      return failure
    }
  }

  /// Waits until each of them has its partitions: the first time takes its group some seconds.
  func join(within limit: Duration) async throws {
    let end = MonotonicTime.now + limit
    while [revoker, eraser, mail].contains(where: { $0.partitionCount == 0 }), MonotonicTime.now < end {
      try await Loop.sleep(for: .milliseconds(10))
    }
  }

  /// Ends all of them in good order, the log last.
  func drain() async {
    await accounts.drain(within: Self.patience)
    for consumer in [revoker, eraser, mail] { await consumer.drain(within: Self.patience) }
    await auditLog.drain(within: Self.patience)
    await store.close()
  }

  /// Somebody signs in: the application exchanges the code that Apple gives, keeps the token, and has a customer.
  func signIn(_ person: Person, at apple: SimulatedApple) async throws {
    guard let subject = AppleSubject(person.subject) else { return }
    guard let code = AuthorizationCode(try apple.signIn(person, to: client.text)),
      case .granted(let tokens) = try await endpoints.exchange(code, redirectURI: nil, by: client),
      let token = tokens.refreshToken.flatMap({ SecretToken($0.text) })
    else { throw DemoFailure.noToken }
    // What the simulated Apple tells next has happened some seconds ago, and must have happened after this.
    let time = Timestamp.now - .seconds(60)
    let refused = try await store.recordSignIn(
      Account(team: team, subject: subject), at: time,
      tokens: [NewToken(kind: .refresh, client: client, value: token)])
    guard refused.isEmpty else { throw DemoFailure.tokenNotKept }
    try customers.welcome(subject, of: team, email: person.address, isRelayed: person.hidesAddress, at: time)
  }

  /// Has the audit log prove that all is done for these people, whose events these are.
  func prove(
    _ events: Set<EventID>, of people: [Person], withReceiptsOf event: EventID, in directory: String,
    within patience: Duration
  ) async throws -> RehearsalProof {
    let accounts = people.compactMap { AppleSubject($0.subject) }.map { Account(team: team, subject: $0) }
    return try await auditLog.prove(
      events, of: Set(accounts.map { store.hash(of: $0) }), withReceiptsOf: event, in: directory, within: patience)
  }

  /// What is left of somebody: nothing, once all is done.
  func remains(of person: Person) async throws -> [String] {
    guard let subject = AppleSubject(person.subject) else { return [] }
    let account = Account(team: team, subject: subject)
    var remains: [String] = []
    if try customers.knows(subject) { remains.append("a customer in the shop") }
    if try await !store.tokens(of: account).isEmpty { remains.append("a token") }
    if case .known = try await store.relayStates(of: [account]).first { remains.append("a mail state") }
    return remains
  }
}

/// What cannot go wrong in a rehearsal, unless something is.
enum DemoFailure: Error, CustomStringConvertible {
  case noToken, tokenNotKept

  var description: String {
    switch self {
    case .noToken: "the simulated Apple gave no token for a code"
    case .tokenNotKept: "somebody signed in who had gone already"
    }
  }
}
