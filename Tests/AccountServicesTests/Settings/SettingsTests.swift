import AccountEvents
import AccountServices
import Configuration
import Cryptography
import EventLoop
import HTTPServer
import Telemetry
import TestSupport
import Testing

@Suite struct SettingsTests {
  private let directory = TemporaryDirectory()
  private let schema = ConfigurationSchema.siwa
  private static let certificate = SelfSignedCertificate.sample

  /// A configuration that works, but for `changes`.
  private func faults(_ changes: [String: String], without missing: [String] = []) -> [String] {
    do {
      _ = try schema.load(IngressConfiguration.self, from: sources(changes, without: missing))
      return []
    } catch {
      return error.description.split(separator: "\n").map(String.init)
    }
  }

  private func sources(_ changes: [String: String] = [:], without missing: [String] = []) -> ConfigurationSources {
    var environment = [
      "SIWA_TEAMS_A1B2C3D4E5_AUDIENCES": "com.example.app,com.example.web",
      "SIWA_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
      "SIWA_INGRESS_CERTIFICATE": directory.write("certificate", Self.certificate.certificatePEM),
      "SIWA_INGRESS_PRIVATE_KEY": directory.write("key", Self.certificate.privateKeyPEM),
    ]
    for name in missing { environment[name] = nil }
    environment.merge(changes) { $1 }
    return ConfigurationSources(file: directory.write("t.yaml", ""), environment: environment)
  }

  @Test func readsWhatTheIngressNeeds() throws {
    let configuration = try schema.load(IngressConfiguration.self, from: sources()).value
    let team = try #require(TeamID("A1B2C3D4E5"))
    #expect(Set(configuration.teams.teams.keys.map(\.text)) == ["com.example.app", "com.example.web"])
    #expect(configuration.teams.teams.values.allSatisfy { $0 == team })
    #expect(configuration.ingress.listen.description == "0.0.0.0:8443")
    #expect(configuration.ingress.admin.isLoopback)
    #expect(configuration.ingress.tls.privateKeyFile == directory.path + "/key")
    #expect(configuration.apple.issuer == "https://appleid.apple.com")
    #expect(configuration.kafka.properties["bootstrap.servers"] == "127.0.0.1:9092")
    _ = try configuration.kafka.configuration(of: "siwa-ingress")
    #expect(configuration.log == LogSettings(level: .info, format: .json))
  }

  /// Before the program is started, which would end at once.
  @Test func aCertificateAndAKeyThatNoServerCanBeMadeWithAreNamed() throws {
    let (certificate, key) = (directory.write("c", Self.certificate.certificatePEM), directory.write("k", "none"))
    let other = directory.write("o", try P256PrivateKey().pem())
    for (changes, setting) in [
      (["SIWA_INGRESS_CERTIFICATE": key], "SIWA_INGRESS_CERTIFICATE"),
      (["SIWA_INGRESS_CERTIFICATE": certificate, "SIWA_INGRESS_PRIVATE_KEY": key], "SIWA_INGRESS_PRIVATE_KEY"),
      (["SIWA_INGRESS_CERTIFICATE": certificate, "SIWA_INGRESS_PRIVATE_KEY": other], "SIWA_INGRESS_PRIVATE_KEY"),
    ] {
      let found = faults(changes)
      #expect(found.count == 1 && found[0].hasPrefix("\(setting): the "), "\(found)")
    }
  }

  @Test func namesAllThatIsMissing() {
    let names = [
      "SIWA_TEAMS_A1B2C3D4E5_AUDIENCES", "SIWA_KAFKA_BOOTSTRAP_SERVERS", "SIWA_INGRESS_CERTIFICATE",
      "SIWA_INGRESS_PRIVATE_KEY",
    ]
    let file = "set it in \(directory.path)/t.yaml or as"
    #expect(
      faults([:], without: names) == [
        "teams: missing; expected settings for a Team ID (ten capital letters and digits, such as A1B2C3D4E5)",
        "kafka.bootstrap.servers: missing; \(file) SIWA_KAFKA_BOOTSTRAP_SERVERS",
        "ingress.certificate: missing; expected the path of a file that can be read; \(file) SIWA_INGRESS_CERTIFICATE",
        "ingress.private-key: missing; expected the path of a file that can be read; \(file) SIWA_INGRESS_PRIVATE_KEY",
      ])
  }

  @Test(arguments: [
    (
      "SIWA_TEAMS_F1B2C3D4E5_AUDIENCES", "org.example.app,com.example.app",
      "com.example.app is an audience of A1B2C3D4E5 already"
    ),
    ("SIWA_TEAMS_A1B2C3D4E5_AUDIENCES", "a,b,a", "a stands here twice"),
    (
      "SIWA_TEAMS_A1B2C3D4E5_AUDIENCES", "a b",
      "expected a list of 1 to 1000 items, each an App ID or Services ID, such as com.example.app, found \"a b\""
    ),
    (
      "SIWA_TEAMS_A1_AUDIENCES", "a",
      "expected a Team ID (ten capital letters and digits, such as A1B2C3D4E5) as a key, found \"A1\""
    ),
    ("SIWA_INGRESS_DEADLINES_PUBLISH", "30s", "expected less than ingress.deadlines.request"),
    (
      "SIWA_INGRESS_DEADLINES_REQUEST", "soon",
      "expected a duration from 100ms to 5m, such as 250ms, 5s or 60d, found \"soon\""
    ),
    ("SIWA_INGRESS_ADMIN", "0.0.0.0:8443", "expected another address than ingress.listen"),
    (
      "SIWA_INGRESS_PATH", "notifications?",
      "expected a path that begins with /, of letters, digits and -._~/, found \"notifications?\""
    ),
    (
      "SIWA_APPLE_KEYS", "http://appleid.apple.com/auth/keys",
      "expected an https URL (http only to this machine), such as https://example.com/path, "
        + "found \"http://appleid.apple.com/auth/keys\""
    ),
    ("SIWA_APPLE_KEYS", "http://127.0.0.1:8080/auth/keys", nil),
    ("SIWA_KAFKA_SECURITY_PROTOCOL", "ssl", nil),
    ("SIWA_KAFKA_COLOUR", "red", "No such configuration property: \"colour\""),
    ("SIWA_KAFKA_LINGER_MS", "soon", "Invalid value for configuration property \"queue.buffering.max.ms\""),
    ("SIWA_LOG_LEVEL", "loud", "expected debug, info, notice, warning or error, found \"loud\""),
  ]) func explainsWhatDoesNotFit(variable: String, value: String, fault: String?) {
    #expect(faults([variable: value]) == (fault.map { ["\(variable): \($0)"] } ?? []))
  }

  @Test(arguments: [
    ("ENABLE_AUTO_COMMIT", "true", "kafka.enable.auto.commit"), ("GROUP_ID", "x", "kafka.group.id"),
    ("AUTO_OFFSET_RESET", "latest", "kafka.auto.offset.reset"),
    ("MAX_POLL_INTERVAL_MS", "9000", "kafka.max.poll.interval.ms"),
    ("PARTITIONER", "random", "kafka.partitioner"),
    ("ALLOW_AUTO_CREATE_TOPICS", "true", "kafka.allow.auto.create.topics"),
    ("SECURITY_PROTOCOL", "sasl_ssl", "kafka"),
  ]) func knowsWhatEachProgramsClientsWouldRefuse(variable: String, value: String, setting: String) {
    let report = schema.check(sources(["SIWA_KAFKA_\(variable)": value]))
    let consumers = ["siwa-data-eraser", "siwa-email-relay", "siwa-token-revoker"]
    let isOfConsumersOnly = ["ENABLE_AUTO_COMMIT", "GROUP_ID", "AUTO_OFFSET_RESET", "MAX_POLL_INTERVAL_MS"]
      .contains(variable)
    // They read without a group; the audit log produces nothing.
    let accounts = variable == "MAX_POLL_INTERVAL_MS" ? [] : ["siwa-accounts"]
    let auditLog = ["MAX_POLL_INTERVAL_MS", "PARTITIONER"].contains(variable) ? [] : ["siwa-audit-log"]
    let refusing = report.programs.filter { $0.faults.contains { $0.setting == setting } }.map(\.name)
    let ingress = isOfConsumersOnly ? [] : ["siwa-ingress"]
    #expect(refusing == ingress + consumers + accounts + auditLog, "\(report)")
  }

  @Test func warnsOfAMechanismThatBrokersRefuse() throws {
    let scram = ["SIWA_KAFKA_SASL_MECHANISM": "SCRAM-SHA-256", "SIWA_KAFKA_SASL_USERNAME": "somebody"]
    let loaded = try schema.load(IngressConfiguration.self, from: sources(scram))
    #expect(loaded.warnings.map(\.origin) == [.variable("SIWA_KAFKA_SASL_MECHANISM")])
    #expect(loaded.warnings.first?.message.contains("librdkafka 2.6") == true)
  }

  @Test func warnsOfACertificateWithoutItsChain() async throws {
    let files = try await SignedCertificate(in: directory)
    let changes = ["SIWA_INGRESS_CERTIFICATE": files.certificate, "SIWA_INGRESS_PRIVATE_KEY": files.key]
    let loaded = try schema.load(IngressConfiguration.self, from: sources(changes))
    #expect(loaded.warnings.map(\.origin) == [.variable("SIWA_INGRESS_CERTIFICATE")])
    #expect(loaded.warnings.first?.message.contains("its issuer (/CN=An authority)") == true)
  }

  @Test func warnsWhereTheMetricsAreVisibleToTheNetwork() throws {
    let loaded = try schema.load(IngressConfiguration.self, from: sources(["SIWA_INGRESS_ADMIN": "10.0.0.1:9443"]))
    #expect(loaded.warnings.map(\.origin) == [.variable("SIWA_INGRESS_ADMIN")])
  }

  @Test func warnsWhereThereWouldBeMoreConnectionsThanDescriptors() throws {
    let room = DescriptorLimit.connections(within: DescriptorLimit.highest)
    for (count, isTooMany) in [(room, false), (room + 1, true)] where count <= 100_000 {
      let changes = ["SIWA_INGRESS_LIMITS_CONNECTIONS": "\(count)"]
      let warnings = try schema.load(IngressConfiguration.self, from: sources(changes)).warnings
      #expect(warnings.contains { $0.description.contains("no more than \(room) can be open") } == isTooMany)
    }
  }

  @Test func takesNobodysWordForWhoConnectsUnlessSomebodySaysSo() throws {
    func proxies(_ text: String?) throws -> [AddressRange] {
      let changes = text.map { ["SIWA_INGRESS_PROXY_PROTOCOL": $0] } ?? [:]
      return try schema.load(IngressConfiguration.self, from: sources(changes)).value.ingress.proxies
    }
    #expect(try proxies(nil) == [])
    #expect(try proxies("10.0.0.0/8,2001:db8::/32").map(\.description) == ["10.0.0.0/8", "2001:db8::/32"])
    for text in ["10.0.0.1/8", "balancer", "10.0.0.0/8,"] {
      #expect(faults(["SIWA_INGRESS_PROXY_PROTOCOL": text]).contains { $0.hasPrefix("SIWA_INGRESS_PROXY_PROTOCOL: ") })
    }
    let everybody = sources(["SIWA_INGRESS_PROXY_PROTOCOL": "0.0.0.0/0"])
    let warnings = try schema.load(IngressConfiguration.self, from: everybody).warnings
    #expect(warnings.contains { $0.description.contains("everybody may say who they are") })
  }

  @Test func neverShowsAPasswordForKafka() throws {
    let secrets = ["SIWA_KAFKA_SASL_PASSWORD": "hunter2", "SIWA_KAFKA_SSL_KEY_PASSWORD": "hunter2"]
    let sources = sources(secrets)
    let configuration = try schema.load(IngressConfiguration.self, from: sources).value
    #expect(configuration.kafka.properties["sasl.password"] == "hunter2")
    var dumped = ""
    dump(configuration, to: &dumped)
    #expect(!"\(configuration) \(dumped) \(schema.check(sources))".contains("hunter2"))
  }

  @Test func checksAFileFromTheCommandLine() async {
    let program = CommandLineProgram("siwa", "The operator's tool.", [ConfigurationCheck.self, ConfigurationList.self])
    let good = directory.write(
      "good.yaml",
      """
      teams: { A1B2C3D4E5: { audiences: [com.example.app] } }
      kafka: { bootstrap.servers: "127.0.0.1:9092" }
      ingress: { certificate: certificate, private-key: key }
      store: { sqlite: store.sqlite, master-key: master-key }
      """)
    _ = directory.write("certificate", Self.certificate.certificatePEM)
    _ = directory.write("key", Self.certificate.privateKeyPEM)
    #expect(await program.run(["config", "check", "--config", good, "--program", "siwa-ingress"]) == .success)
    let store = ["config", "check", "--config", good, "--program", "siwa store"]
    #expect(await program.run(store) == .failure, "there is no master key")
    _ = directory.write("master-key", String(repeating: "A", count: 43))
    #expect(await program.run(store) == .success)
    #expect(await program.run(["config", "check", "--config", good]) == .failure, "the teams have no keys")
    #expect(
      await program.run(["config", "check", "--config", good, "--program", "siwa-ingress", "--set", "log.level=loud"])
        == .failure)
    #expect(await program.run(["config", "check", "--config", good, "--program", "siwa-ingres"]) == .misuse)
    #expect(await program.run(["config", "list"]) == .success)
  }
}
