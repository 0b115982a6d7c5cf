import AccountEvents
import AccountStore
import Configuration
import EventLoop
import HTTPClient
import Kafka
package import Telemetry
package import TransparencyLog

extension AuditLogService {
  /// How long a question to Kafka about Apple's keys may take.
  private static let keysLimit = Duration.seconds(30)

  /// The properties of a reader whose broker waits for a piece of a megabyte, at most half a second and at most as long as
  /// entries wait for their checkpoint: to be asked for each record costs the broker, and with it whoever produces.
  private static func readingInPieces(within interval: Duration) -> [(String, String)] {
    let patience = min(interval, .milliseconds(500)).wholeNanoseconds / 1_000_000
    return [("fetch.min.bytes", "1048576"), ("fetch.wait.max.ms", "\(patience)")]
  }

  /// Builds the log from its configuration. Throws what is wrong with addresses or properties, and with the account store.
  package convenience init(
    _ configuration: AuditLogConfiguration, registry: MetricsRegistry, logger: Logger
  ) async throws {
    let kafka = try configuration.kafka.configuration(of: AuditLogCommand.program)
    let store = configuration.store
    let reading = try kafka.with(defaults: Self.readingInPieces(within: configuration.audit.interval))
    let hashing = CurrentHashing(try await store.accountHashing())
    let letters = LetterBox(kafka, .quarantine, within: Self.keysLimit, log: logger.forKafka)
    let sources = Sources(
      source: { () throws(KafkaError) in try Consumer(reading, group: nil, log: logger.forKafka) },
      signingKeys: { () throws(KafkaError) in Array(try await letters.signingKeys().values) },
      translation: RecordTranslation(hash: { hashing.hash(of: $0) }, issuer: configuration.issuer))
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: AuditLogCommand.program, trustAnchors: .system, proxy: .none, connectTimeout: .seconds(5),
        maximumConnections: 16, maximumRequests: 64))
    try self.init(
      configuration.audit, sources, signers: CheckpointSigners(configuration.audit), client: client,
      registry: registry, logger: logger, now: { .now })
    companion = {
      await hashing.follow({ () throws(AccountStoreError) in try await store.accountHashing() }, logger)
    }
  }
}

extension CheckpointSigners {
  /// The signers as the configuration has them.
  package init(_ settings: AuditLogSettings) {
    let first: any NoteSigning =
      switch settings.signer {
      case .key(let key): key
      case .program(let command, let key): SigningProgram(command, key: key)
      }
    self.init([first] + (settings.formerKey.map { [$0] } ?? []))
  }
}

extension SigningProgram {
  /// How long a program may take for a signature.
  private static let deadline = Duration.seconds(10)

  /// The program as it is run where it is configured.
  package init(_ command: [String], key: VerifierKey) {
    // Without the settings in it, which may be secrets of ours.
    let environment = ConfigurationSources.processEnvironment.filter { !$0.key.hasPrefix("SIWA_") }
    self.init(command, environment: environment, key: key, within: Self.deadline)
  }
}
