import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import HTTPClient
import HTTPServer
import Kafka
import Telemetry

/// The whole way of a notification inside one process: a simulated Apple, Kafka, the ingress, siwa-accounts, the consumers,
/// the audit log, a shop in which people sign in, and a reader of their topics.
@Loop
final class Rehearsal {
  static let audience = "com.example.app"
  private static let shopAudience = "com.example.web"
  static let team = "A1B2C3D4E5"
  private static let path = "/apple/notifications"
  /// How long a step may take: a small machine may be busy with something else.
  static let patience = Duration.seconds(180)
  /// How long the end may take.
  private static let farewell = Duration.seconds(10)

  private let folder: ScratchFolder
  let apple: SimulatedApple
  private let appleServer: SimulatedAppleServer
  /// Apple's pages for browsers, which would warn of the certificate.
  private let applePages: SimulatedAppleServer
  private let cluster: EmbeddedCluster?
  private let bootstrapServers: String
  private let ingress: IngressService
  let services: RehearsedServices
  let shop: Shop
  private let shopServer: EndpointServer
  private let accountsClient: AccountsClient
  let producer: Producer
  let reader: Consumer
  private let receiver: HTTPClientURL
  /// Where proof of the first round is left; nil for a new folder beside the others that are temporary.
  let proof: String?
  var story = Story()
  /// The events of the first round, and which of them is the deletion of an account by Apple.
  var (events, deletion): (Set<EventID>, EventID?) = ([], nil)
  /// What has not been seen yet of what there is to be seen: of every type of event, and what follows from it.
  var missing: Set<String> = [
    "email-enabled", "email-disabled", "consent-revoked", "account-delete", "account-deletion-requested",
    "tokens-revoked", "sessions-ended", "account-erased after account-delete",
    "account-erased after account-deletion-requested", "relay-changed", "email-relay",
  ]

  /// Makes all parts and binds all ports. `brokers` are those of a real cluster; nil for one in this process. `proof` is the
  /// folder that proof is left in; nil for a new one.
  init(brokers: String?, proof: String?) async throws {
    self.proof = proof
    let start = Timestamp.now
    folder = try ScratchFolder()
    let certificate = try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1", "::1"], validFrom: start.milliseconds / 1000 - 3600, seconds: 30 * 86_400)
    try folder.write(certificate.certificatePEM, to: "certificate.pem")
    try folder.write(certificate.privateKeyPEM, to: "key.pem")
    let tls = TLSServerConfiguration(
      certificateFile: folder.file("certificate.pem"), privateKeyFile: folder.file("key.pem"))
    let anchors = HTTPClientConfiguration.TrustAnchors.systemAnd(file: folder.file("certificate.pem"))

    apple = SimulatedApple(
      ring: try KeyRing(generating: 2), issuer: AppleNotification.appleIssuer, trustAnchors: anchors,
      clock: { Timestamp.now })
    appleServer = try SimulatedAppleServer(apple, port: 0, tls: tls)
    applePages = try SimulatedAppleServer(apple, port: 0, tls: nil)

    (cluster, bootstrapServers) = try await Self.cluster(brokers)
    let kafka = KafkaSettings(properties: Properties(["bootstrap.servers": bootstrapServers]))
    reader = try await Self.reader(
      try kafka.configuration(of: "siwa"), [.accountEvents, .quarantine, .outcomes, .emailRelay])
    producer = try Producer(try kafka.configuration(of: "siwa"), deadline: Self.patience, log: { _ in })
    ingress = try await IngressService(
      try Self.configuration(
        kafka: kafka, tls: tls, keysURL: appleServer.keysURL, keysFile: folder.file("apple-keys.json"),
        spool: folder.file("spool"), trustedCA: folder.file("certificate.pem")),
      registry: MetricsRegistry(), logger: Logger(level: .warning, format: .text))
    guard let receiver = HTTPClientURL("https://localhost:\(ingress.address.port)\(Self.path)") else {
      preconditionFailure("an address of our own")
    }
    self.receiver = receiver
    guard let team = TeamID(Self.team), let client = ClientID(Self.audience), let web = ClientID(Self.shopAudience)
    else { preconditionFailure("our own constants") }
    services = try await RehearsedServices(
      in: folder, team: team, clients: (client, web), apple: apple, server: appleServer,
      bootstrapServers: bootstrapServers, relayPort: try Self.freePort())
    accountsClient = AccountsClient(
      "https://\(services.accounts.address)", token: services.accountsToken, trusting: anchors)
    let shop = Shop(
      port: try Self.freePort(),
      Shop.Configuration(
        client: web, team: team, authorize: applePages.authorizationURL, appleAccount: applePages.accountURL),
      accountsClient, services.customers)
    shopServer = try EndpointServer(
      .loopback(port: shop.port), tls: nil,
      EndpointServer.Bounds(
        head: 16_384, body: 65_536, connections: 64, connectionsPerAddress: 64, request: .seconds(120)),
      registry: MetricsRegistry(), logger: Logger(level: .warning, format: .text), now: { .now },
      handler: { request in await shop.answer(request) })
    self.shop = shop
    apple.register(redirectURIs: [shop.redirectURI], for: Self.shopAudience)
    apple.notifications = plan
  }

  var plan: DeliveryPlan {
    DeliveryPlan(receiver: receiver, attempts: 5, pause: .milliseconds(200), deadline: .seconds(60))
  }

  /// A port that is free, below those that Linux gives to whoever asks for any (`ip_local_port_range`, from 32,768 on): so
  /// that hardly anybody takes it before it is bound.
  private static func freePort() throws -> UInt16 {
    var attempts = 100
    while true {
      attempts -= 1
      let port = UInt16.random(in: 10_000..<20_000)
      do throws(SystemError) {
        try ListeningSocket(.loopback(port: port)).close()
        return port
      } catch {  // somebody has it
        guard attempts > 0 else { throw error }
      }
    }
  }

  /// Where everything is, for people who want to look.
  var whereabouts: [String] {
    [
      "Open the shop       \(shop.origin)/  in a browser: sign in, and delete your account",
      "Your Apple Account  \(applePages.accountURL)  turn off forwarding, stop using the shop, delete the account",
      "",
      "Apple (simulated)   \(appleServer.keysURL)",
      "Kafka (\(cluster == nil ? "real)    " : "embedded)")    \(bootstrapServers)",
      "Ingress             \(receiver)",
      "Administration      http://\(ingress.administrationAddress)  /livez /readyz /metrics",
      "Mailers ask         \(services.relay.address)/v1/email-relay/\(Self.team)/SUB",
      "                    with Authorization: Bearer \(services.relay.token)",
      "Audit log           \(services.auditLog.address)/checkpoint",
      "                    verified by \(services.auditLog.key)",
      "siwa-accounts       https://\(services.accounts.address)/v1/",
      "The shop's data     \(services.customers.path)",
      "Configuration       \(services.file)  (of siwa-accounts, the consumers, the audit log, and siwa audit)",
      "Trust anchor        \(folder.file("certificate.pem"))",
      "",
      "Send one yourself:",
      "  \(CommandLine.arguments.first ?? "siwa") notify account-delete --user ada --to \(receiver) \\",
      "    --simulator https://localhost:\(appleServer.address.port) --trust \(folder.file("certificate.pem"))",
      "",
    ]
  }

  /// Runs until the task is cancelled; with `once`, until one event of every type has arrived. Nil where it was
  /// cancelled.
  func run(every interval: Duration, once: Bool) async -> ExitCode? {
    await withTaskGroup(of: ExitCode?.self) { group in
      let loop = Loop.executor
      group.addTask(executorPreference: loop) { [appleServer] in
        await appleServer.run()
        return nil
      }
      group.addTask(executorPreference: loop) { [applePages] in
        await applePages.run()
        return nil
      }
      group.addTask(executorPreference: loop) { [shopServer] in
        await shopServer.run()
        return nil
      }
      group.addTask(executorPreference: loop) { [ingress] in
        await ingress.run()
        return nil
      }
      group.addTask(executorPreference: loop) { [services] in
        guard let failure = await services.run() else { return nil }
        Terminal.complain("siwa: \(failure)")
        return .failure
      }
      group.addTask(executorPreference: loop) { [self] in await send(every: interval, once: once) }
      group.addTask(executorPreference: loop) { [self] in await tell(once: once) }
      let first = await group.next() ?? nil
      group.cancelAll()
      await shopServer.drain(within: Self.farewell)
      accountsClient.close()
      await services.drain()
      await ingress.drain(within: Self.farewell)
      await producer.close(within: Self.farewell)
      await reader.close()
      return first
    }
  }
}

// MARK: The parts

extension Rehearsal {
  private static func cluster(_ brokers: String?) async throws -> (EmbeddedCluster?, String) {
    let plans = TopicPlan.all(partitions: 3, replication: 1)
    guard let brokers else {
      let cluster = try EmbeddedCluster(brokers: 1)
      // A partition of it costs memory: more than one has the topic alone that shows how they are shared.
      for plan in plans { try cluster.createTopic(plan.topic.name, partitions: plan.topic == .accountEvents ? 3 : 1) }
      return (cluster, cluster.bootstrapServers)
    }
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", brokers)])
    let admin = try Admin(configuration, log: { _ in })
    _ = try await admin.createTopics(
      plans.map { NewTopic($0.topic.name, partitions: $0.partitions, replicationFactor: nil) }, within: patience)
    for plan in plans { _ = try await admin.awaitTopic(plan.topic.name, within: patience) }
    await admin.close()
    return (nil, brokers)
  }

  /// A reader of these topics, from their ends on.
  private static func reader(_ configuration: KafkaConfiguration, _ topics: [Topic]) async throws -> Consumer {
    let admin = try Admin(configuration, log: { _ in })
    var starts: [PartitionStart] = []
    for topic in topics {
      // Their ends as of now, not as of the moment when the reader first asks: the first records come before that.
      let ends = try await admin.endOffsets(of: topic.name, within: patience)
      starts += ends.map { PartitionStart(topic: topic.name, partition: $0.key, at: .offset($0.value)) }
    }
    await admin.close()
    let consumer = try Consumer(configuration, group: nil, log: { _ in })
    try consumer.assign(starts)
    return consumer
  }

  /// What siwa-ingress would read from its file: trust anchors and addresses differ from production, nothing else.
  private static func configuration(
    kafka: KafkaSettings, tls: TLSServerConfiguration, keysURL: String, keysFile: String, spool: String,
    trustedCA: String
  ) throws -> IngressConfiguration {
    guard let client = ClientID(audience), let web = ClientID(shopAudience), let team = TeamID(team),
      let keysURL = HTTPClientURL(keysURL)
    else { preconditionFailure("our own constants") }
    return IngressConfiguration(
      teams: TeamsSettings(teams: [client: team, web: team]),
      apple: AppleSettings(
        issuer: AppleNotification.appleIssuer, keysURL: keysURL, keysFile: keysFile, keysRefresh: .seconds(60),
        keysPause: .seconds(1), deadline: .seconds(5), clockTolerance: .seconds(60), trustedCA: trustedCA, proxy: .none),
      kafka: kafka,
      ingress: IngressSettings(
        listen: .loopback(port: 0), path: path, tls: tls, admin: .loopback(port: 0), sharesPort: false,
        limits: HTTPServerLimits(
          head: 16_384, fields: 100, body: 65_536, connections: 256, connectionsPerAddress: 256),
        deadlines: HTTPServerDeadlines(
          handshake: .seconds(30), head: .seconds(30), body: .seconds(30), idle: .seconds(60), request: .seconds(60)),
        spool: SpoolSettings(directory: spool, size: 64 << 20, after: .seconds(1)),
        duplicates: DuplicatesSettings(number: 1000, time: .seconds(3600)), publishDeadline: .seconds(10),
        drainDeadline: farewell),
      log: LogSettings(level: .warning, format: .text))
  }
}
