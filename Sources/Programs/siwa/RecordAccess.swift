import AccountEvents
import AccountServices
import AppleID
import Configuration
import EventLoop
import Kafka

/// The records that an audit log is compared with, in the cluster of the configuration.
@Loop
struct RecordAccess {
  /// How long the cluster may take for an answer, or be silent.
  private static let patience = Duration.seconds(30)

  private let options: ConfigurationOptions

  init(_ options: ConfigurationOptions) { self.options = options }

  /// Reads Apple's keys, and which records there are.
  func begin() async throws -> RunningComparison {
    let kafka = try options.kafka()
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    let issuer = try ConfigurationSchema.siwa.load(AppleSettings.self, from: sources).value.issuer
    var ring = SigningKeyRing()
    for key in try await appleKeys() { ring.add(key) }
    let held = try await Admin.run(kafka, log: ConfigurationOptions.kafkaLog) { admin throws(KafkaError) in
      try await admin.held(by: Topic.accountEvents.name, within: Self.patience)
    }
    return RunningComparison(RecordComparison(of: held, ring, issuedBy: issuer), held, kafka, within: Self.patience)
  }

  /// Every key of Apple's that ever verified something.
  func appleKeys() async throws -> [AppleSigningKey] {
    var keys: [AppleSigningKey] = []
    var failure: EventDecodingError?
    try await TopicPages.read(
      .signingKeys, try options.kafka(), within: Self.patience, log: ConfigurationOptions.kafkaLog
    ) { page throws(KafkaError) in
      for value in page.records.compactMap(\.value) {
        do throws(EventDecodingError) {
          let key = try AppleSigningKey(decoding: value)
          // Two keys of one name may both have signed something.
          if !keys.contains(where: { $0.isSame(as: key) }) { keys.append(key) }
        } catch { failure = error }
      }
      return failure == nil
    }
    if let failure { throw failure }
    return keys
  }
}

/// A comparison of an audit log with records, while it runs.
@Loop
struct RunningComparison {
  private var comparison: RecordComparison
  private let held: [Int32: Range<Int64>]
  private let kafka: KafkaConfiguration
  private let patience: Duration

  init(
    _ comparison: RecordComparison, _ held: [Int32: Range<Int64>], _ kafka: KafkaConfiguration,
    within patience: Duration
  ) {
    (self.comparison, self.held, self.kafka, self.patience) = (comparison, held, kafka, patience)
  }

  /// Takes in an entry of the log.
  mutating func take(_ bytes: RawSpan, at index: UInt64) throws {
    comparison.take(try AuditLog.entry(at: index, bytes), at: index)
  }

  /// Reads the records, and says on standard error what does not fit; false where something does not.
  consuming func run(on log: AuditLog) async throws -> Bool {
    var findings = 0
    func complain(_ finding: RecordComparison.Finding) {
      findings += 1
      Terminal.complain("siwa: NO: \(finding)")
    }
    let bar = ProgressBar("records")
    let pages = try await TopicPages.open(
      .accountEvents, held, kafka, within: patience, log: ConfigurationOptions.kafkaLog)
    do {
      while let page = try await pages.next() {
        for record in page.records { if let finding = comparison.compare(record) { complain(finding) } }
        bar.note(done: page.done, of: page.total)
      }
    } catch {
      await pages.close()
      throw error
    }
    await pages.close()
    if comparison.hasSuspects {
      try await log.entries(progress: { bar.note(done: $0, of: $1) }, { _, entry in comparison.clear(by: entry) })
      for finding in comparison.notLogged { complain(finding) }
    }
    bar.clear()
    Terminal.say(
      "Records     \(comparison.compared) compared, \(comparison.signed) of them signed by Apple, "
        + "\(comparison.younger) younger than the checkpoint"
        + (comparison.unreadable > 0 ? ", \(comparison.unreadable) no events, as the log says" : ""))
    return findings == 0
  }
}
