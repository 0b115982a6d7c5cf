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

/// The whole way of a notification inside one process: a simulated Apple, Kafka, the ingress, and a reader of its topics.
@Loop
final class Rehearsal {
  private static let audience = "com.example.app"
  private static let team = "A1B2C3D4E5"
  private static let path = "/apple/notifications"
  private static let patience = Duration.seconds(10)

  private let folder: ScratchFolder
  private let apple: SimulatedApple
  private let appleServer: SimulatedAppleServer
  private let cluster: EmbeddedCluster?
  private let bootstrapServers: String
  private let ingress: IngressService
  private let consumer: Consumer
  private let receiver: HTTPClientURL
  private var missing: Set<String> = ["email-enabled", "email-disabled", "consent-revoked", "account-delete"]

  /// Makes all parts and binds all ports. `brokers` are those of a real cluster; nil for one in this process.
  init(brokers: String?) async throws {
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

    let topics = [Topic.accountEvents, Topic.quarantine]
    (cluster, bootstrapServers) = try await Self.cluster(brokers, topics + [.signingKeys])
    let kafka = KafkaSettings(properties: Properties(["bootstrap.servers": bootstrapServers]))
    consumer = try await Self.consumer(try kafka.configuration(), topics)
    ingress = try await IngressService(
      try Self.configuration(
        kafka: kafka, tls: tls, keysURL: appleServer.keysURL, keysFile: folder.file("apple-keys.json"),
        spool: folder.file("spool"), trustedCA: folder.file("certificate.pem")),
      registry: MetricsRegistry(), logger: Logger(level: .warning, format: .text))
    guard let receiver = HTTPClientURL("https://localhost:\(ingress.address.port)\(Self.path)") else {
      preconditionFailure("an address of our own")
    }
    self.receiver = receiver
  }

  /// Where everything is, for people who want to look.
  var whereabouts: [String] {
    [
      "Apple (simulated)   \(appleServer.keysURL)",
      "Kafka (\(cluster == nil ? "real)    " : "embedded)")    \(bootstrapServers)",
      "Ingress             \(receiver)",
      "Administration      http://\(ingress.administrationAddress)  /livez /readyz /metrics",
      "Trust anchor        \(folder.file("certificate.pem"))",
      "",
      "Send one yourself:",
      "  siwa notify account-delete --user ada --to \(receiver) \\",
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
      group.addTask(executorPreference: loop) { [ingress] in
        await ingress.run()
        return nil
      }
      group.addTask(executorPreference: loop) { [self] in await send(every: interval, once: once) }
      group.addTask(executorPreference: loop) { [self] in await tell(once: once) }
      let first = await group.next() ?? nil
      group.cancelAll()
      await ingress.drain(within: Self.patience)
      await consumer.close()
      return first
    }
  }
}

// MARK: The parts

extension Rehearsal {
  private static func cluster(_ brokers: String?, _ topics: [Topic]) async throws -> (EmbeddedCluster?, String) {
    guard let brokers else {
      let cluster = try EmbeddedCluster(brokers: 1)
      for topic in topics { try cluster.createTopic(topic.name, partitions: 3) }
      return (cluster, cluster.bootstrapServers)
    }
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", brokers)])
    let admin = try Admin(configuration, log: { _ in })
    _ = try await admin.createTopics(
      topics.map { NewTopic($0.name, partitions: 3, replicationFactor: nil) }, within: patience)
    for topic in topics { _ = try await admin.awaitTopic(topic.name, within: patience) }
    await admin.close()
    return (nil, brokers)
  }

  /// A reader of both topics, from their ends on.
  private static func consumer(_ configuration: KafkaConfiguration, _ topics: [Topic]) async throws -> Consumer {
    let admin = try Admin(configuration, log: { _ in })
    var starts: [PartitionStart] = []
    for topic in topics {
      // Their ends as of now, not as of the moment when the consumer first asks: the first records come before that.
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
    guard let client = ClientID(audience), let team = TeamID(team), let keysURL = HTTPClientURL(keysURL) else {
      preconditionFailure("our own constants")
    }
    return IngressConfiguration(
      teams: TeamsSettings(teams: [client: team]),
      apple: AppleSettings(
        issuer: AppleNotification.appleIssuer, keysURL: keysURL, keysFile: keysFile, keysRefresh: .seconds(60),
        keysPause: .seconds(1), deadline: .seconds(5), clockTolerance: .seconds(60), trustedCA: trustedCA, proxy: .none),
      kafka: kafka,
      ingress: IngressSettings(
        listen: .loopback(port: 0), path: path, tls: tls, admin: .loopback(port: 0), sharesPort: false,
        limits: HTTPServerLimits(
          head: 16_384, fields: 100, body: 65_536, connections: 256, connectionsPerAddress: 256),
        deadlines: HTTPServerDeadlines(
          handshake: .seconds(5), head: .seconds(5), body: .seconds(5), idle: .seconds(60), request: .seconds(30)),
        spool: SpoolSettings(directory: spool, size: 64 << 20, after: .seconds(1)),
        duplicates: DuplicatesSettings(number: 1000, time: .seconds(3600)), publishDeadline: .seconds(10),
        drainDeadline: patience),
      log: LogSettings(level: .warning, format: .text))
  }
}

// MARK: The story

extension Rehearsal {
  /// Has Apple send one notification after another: one of each type, then again. Nil when the task is cancelled, a
  /// failure where a delivery that must succeed does not.
  private func send(every interval: Duration, once: Bool) async -> ExitCode? {
    let plan = DeliveryPlan(receiver: receiver, attempts: 5, pause: .milliseconds(200), deadline: Self.patience)
    let types: [NotificationType] = [.emailDisabled, .emailEnabled, .consentRevoked, .accountDeleted]
    var round = 0
    do {
      while true {
        for type in types {
          let notification = try apple.sign(type, of: Person(named: "person \(round)"), for: Self.audience)
          let delivery = await apple.deliver([notification], plan)
          if Task.isCancelled { return nil }
          guard delivery.allSatisfy({ $0.received == 1 }) else {
            let attempts = delivery.flatMap(\.attempts).map(\.description).joined(separator: ", ")
            Terminal.complain("siwa: the ingress did not take \(type.rawValue): \(attempts)")
            return .failure
          }
          if !once { try await Loop.sleep(for: interval) }
        }
        round += 1
        if once { try await Loop.sleep(for: Self.patience) }
      }
    } catch is CancellationError {
      return nil
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }

  /// Says of each record that arrives where it stands; with `once`, until there was one of every type.
  private func tell(once: Bool) async -> ExitCode? {
    do throws(KafkaError) {
      while true {
        let records = try await consumer.next(upTo: 100)
        if records.isEmpty { return nil }
        for record in records {
          Terminal.say(record.line)
          missing.remove(record.eventType)
        }
        if once, missing.isEmpty {
          Terminal.say("One event of every type has arrived.")
          return .success
        }
      }
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }
}

extension ConsumedRecord {
  private func header(_ name: String) -> String {
    headers.first { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  /// `consent-revoked`, from `com.apple.siwa.consent-revoked.v1`.
  fileprivate var eventType: String {
    header("ce_type").split(separator: ".").dropLast().last.map(String.init) ?? "unknown"
  }

  fileprivate var line: String {
    let type = eventType + String(repeating: " ", count: max(0, 16 - eventType.count))
    return "\(type) \(topic)  partition \(position.partition)  offset \(position.offset)  event \(header("ce_id"))"
  }
}
