import AccountEvents
import AccountServices
import AppleID
import ConsumerSupport
import EventLoop
import Foundation
import Kafka
import Telemetry
import TestSupport
import Testing
import TransparencyLog

/// A log in a directory of its own, over a cluster in memory.
@Loop
final class AuditRig {
  nonisolated static let origin = "example.com/audit"
  nonisolated static let events = TopicPartition.events(0)
  nonisolated static let outcomes = TopicPartition(Topic.outcomes.name, 0)

  let files = TemporaryDirectory()
  let cluster = MemoryCluster()
  let captured = CapturedLog()
  let registry = MetricsRegistry()
  let journal = JournalThread()
  let key: NoteSigner
  let metrics: AuditMetrics
  let translation = RecordTranslation(hash: { _ in AuditSamples.account }, issuer: AuditForge.issuer)
  var directory: String { files.path + "/log" }
  /// What a session reads from; made with it.
  private(set) var source: MemoryPartitionSource?

  init() throws {
    key = try NoteSigner.generate(name: Self.origin).signer
    metrics = AuditMetrics(registry, witnesses: ["one", "two"])
    for topic in AuditedTopic.all { cluster.make(TopicPartition(topic.topic.name, 0)) }
  }

  /// Puts an event onto its topic.
  func put(_ event: AccountEvent, jws: [UInt8]? = nil, at time: Int64 = 1000) {
    put(EventRecord(event, jws: jws), at: time)
  }

  /// Puts an outcome of an event onto its topic.
  func putOutcome(of event: AccountEvent, _ name: AccountOutcome.Name = .tokensRevoked, at time: Int64 = 1000) {
    put(
      EventRecord(
        AccountOutcome(
          account: AuditSamples.account, name: name, cause: AccountOutcome.Cause(event), consumer: "token-revoker",
          doneAt: AuditSamples.issuedAt)), at: time)
  }

  func put(_ record: EventRecord, at time: Int64 = 1000) {
    cluster.append(
      KafkaRecord(
        topic: record.topic.name, key: record.key, value: record.value,
        headers: record.headers.map { KafkaHeader($0.name, $0.value) }), to: 0, timestamp: time)
    source?.wake()
  }

  /// Opens the log and brings its index up to it; it begins with the first call.
  func open() async throws {
    _ = try LogWriter.begin(in: directory, origin: Self.origin)
    try await journal.open(in: directory, origin: Self.origin)
    try await IndexCatchUp(journal, reading: LogDirectory(directory), logger: captured.logger()).run()
  }

  /// A session of the log, which is open. `readingKeys` is called whenever Apple's keys are read; how long one is waited for
  /// is `keyClock`'s.
  func session(
    every interval: Duration = .milliseconds(1), signers: [any NoteSigning]? = nil, keys: [AppleSigningKey] = [],
    witnesses: WitnessRounds? = nil, keyClock: any AlarmClock = SystemAlarmClock(),
    readingKeys: @escaping @Loop () -> Void = {}
  ) async throws -> AuditSession {
    let source = MemoryPartitionSource(cluster)
    self.source = source
    let book = SigningKeyBook(clock: keyClock, logger: captured.logger()) { () throws(KafkaError) in
      readingKeys()
      return keys
    }
    try await book.read()
    let reader = AuditReader(
      source, from: try await journal.run { $0.readingPositions }, surveyingEvery: .milliseconds(20),
      now: { AuditSamples.loggedAt }, metrics: metrics, logger: captured.logger())
    return AuditSession(
      journal, reader, keys: book, translation: translation, signers: CheckpointSigners(signers ?? [key]),
      witnesses: witnesses ?? rounds([]), every: interval, metrics: metrics, logger: captured.logger())
  }

  func rounds(_ witnesses: [WitnessRounds.Witness], witnessedSize: UInt64? = nil) -> WitnessRounds {
    WitnessRounds(
      witnesses, quorum: witnesses.count, witnessedSize: witnessedSize, metrics: metrics, logger: captured.logger()
    ) { [journal] step in try await journal.publish(step) }
  }

  /// Opens the log, runs a session beside `body`, and drains it; then another process may open it.
  func run(
    every interval: Duration = .milliseconds(1), signers: [any NoteSigning]? = nil, keys: [AppleSigningKey] = [],
    witnesses: WitnessRounds? = nil, keyClock: any AlarmClock = SystemAlarmClock(),
    readingKeys: @escaping @Loop () -> Void = {}, _ body: @Loop (AuditSession) async throws -> Void
  ) async throws {
    try await open()
    let session = try await session(
      every: interval, signers: signers, keys: keys, witnesses: witnesses, keyClock: keyClock, readingKeys: readingKeys)
    let running = Task(executorPreference: Loop.executor) { try await session.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body(session)) } catch { result = .failure(error) }
    running.cancel()
    try await running.value
    await journal.close()
    try result.get()
  }

  /// The checkpoint that readers see; nil before the first.
  func checkpoint(_ path: String = LogPath.checkpoint) throws -> (checkpoint: Checkpoint, note: SignedNote)? {
    guard let bytes = try LogDirectory(directory).contents(of: path, limit: 100_000) else { return nil }
    let note = try SignedNote(bytes)
    return (try Checkpoint(note.text), note)
  }

  /// Waits until readers see so many entries.
  func untilPublished(_ size: UInt64, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    do {
      try await until(within: .seconds(600)) {
        try self.checkpoint()?.checkpoint.size ?? 0 >= size
      }
    } catch {
      let size = try checkpoint()?.checkpoint.size
      let (there, at) = (try await journal.run { $0.size }, source?.position(of: Self.events))
      Issue.record(
        "published \(size ?? 0) of \(there), read up to \(at ?? -1): \(captured.lines.joined())",
        sourceLocation: sourceLocation)
      throw error
    }
  }

  /// The entries that readers see.
  func entries() async throws -> [AuditEntry] {
    guard let checkpoint = try checkpoint()?.checkpoint else { return [] }
    var entries: [AuditEntry] = []
    try await LogView(LogDirectory(directory), at: checkpoint.head).entries(in: 0..<checkpoint.size) { _, entry in
      entries.append(try AuditEntry(decoding: unsafe entry.withUnsafeBytes { unsafe Array($0) }))
    }
    return entries
  }

  /// The value of a metric, with its labels.
  func metric(_ name: String) -> String? {
    let text = String(decoding: registry.render(), as: UTF8.self)
    return text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }.map {
      String($0.dropFirst(name.utf8.count + 1))
    }
  }
}

extension AuditEntry {
  /// What the entry says, in short.
  var words: String {
    switch self {
    case .obligation(let it): "obligation \(it.id) \(it.signature.rawValue)"
    case .effect(let it): "effect \(it.cause)"
    case .decision(let it): "decision \(it.id?.text ?? "-") \(it.kind.rawValue)"
    case .gap(let it): "gap \(it.cause.rawValue) \(it.from)-\(it.to)"
    }
  }
}
