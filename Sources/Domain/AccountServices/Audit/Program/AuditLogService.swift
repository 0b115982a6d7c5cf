package import AccountEvents
package import EventLoop
package import HTTPClient
package import HTTPServer
package import Kafka
import SQLite
package import Telemetry
import TransparencyLog

/// The audit log as a service: reads and appends while it has the log's lock, and serves what is published.
@Loop
package final class AuditLogService: Service {
  /// How long the log is left alone after it could not be gone on with, or while another process has it.
  private static let pause = Duration.seconds(1)
  /// How much longer than its interval a checkpoint may take before the log is not ready: a disk that hangs says nothing.
  private static let patience = Duration.seconds(60)
  private static let untried = "not opened yet"
  /// How long a witness may take for an answer.
  private static let witnessDeadline = Duration.seconds(10)

  /// What the log is made from.
  package struct Sources {
    /// What keeps them from being read.
    package typealias Failure = KafkaError

    /// Makes a reader of the audited topics; called again for each opening of the log.
    let source: @Loop () throws(KafkaError) -> any PartitionSource
    /// Reads all keys on `Topic.signingKeys`.
    let signingKeys: @Loop () async throws(KafkaError) -> [AppleSigningKey]
    /// What makes entries of records.
    let translation: RecordTranslation

    /// Sources from their parts.
    package init(
      source: @escaping @Loop () throws(KafkaError) -> any PartitionSource,
      signingKeys: @escaping @Loop () async throws(KafkaError) -> [AppleSigningKey], translation: RecordTranslation
    ) { (self.source, self.signingKeys, self.translation) = (source, signingKeys, translation) }
  }

  /// Where the log is served, with the real port.
  package nonisolated let address: SocketAddress
  /// Where operators ask, with the real port.
  package nonisolated let administrationAddress: SocketAddress
  /// Runs beside it, as long as it does.
  package var companion: @Loop () async -> Void = {}

  private let settings: AuditLogSettings
  private let sources: Sources
  private let signers: CheckpointSigners
  private let client: HTTPClient
  private let server: EndpointServer
  private let administration: AdministrationServer
  private let disk: LogDisk
  private let journal = JournalThread()
  private let readiness = Readiness([.kafka, .log, .service])
  private let metrics: AuditMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  private var work: Task<Void, Never>?
  private var session: AuditSession?
  /// Why there is no session, or why the last one failed; said once.
  private var failure = AuditLogService.untried
  /// Whether the last try found no log.
  private var isAbsent = false
  /// Whether the last session failed: a full disk lets the next one open the log, and fails it again.
  private var isOnProbation = false
  private var isDraining = false

  /// Binds both addresses. `client` asks witnesses.
  package init(
    _ settings: AuditLogSettings, _ sources: Sources, signers: CheckpointSigners, client: HTTPClient,
    registry: MetricsRegistry, logger: Logger, now: @escaping @Sendable () -> Timestamp
  ) throws(HTTPServerError) {
    (self.settings, self.sources, self.signers, self.client) = (settings, sources, signers, client)
    (self.logger, self.now) = (logger, now)
    metrics = AuditMetrics(registry, witnesses: settings.witnesses.map(\.name))
    disk = LogDisk(settings.directory, thread: BlockingThread(named: "audit-readers"))
    let endpoint = LogEndpoint(disk, metrics: metrics, logger: logger)
    server = try EndpointServer(
      settings.listen, tls: settings.tls, LogEndpoint.bounds, registry: registry, logger: logger, now: now
    ) { request in await endpoint.respond(to: request) }
    administration = try AdministrationServer(settings.admin, readiness: readiness, registry: registry, logger: logger)
    (address, administrationAddress) = (server.address, administration.address)
  }

  /// Serves until `drain` has ended.
  package func run() async {
    guard !isDraining else { return }  // told to end before it began
    readiness[.service] = .ready
    logger.info(
      "the audit log begins",
      ["listen.address": .describing(address), "listen.administration": .describing(administrationAddress)])
    let work = Task(executorPreference: Loop.executor) { await self.write() }
    self.work = work
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [self] in await readiness.watch(.log, logger) { self.logState }
      }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.kafka, logger) { self.session?.kafkaState ?? .notReady(cause: "nothing is read") }
      }
      group.addTask(executorPreference: Loop.executor) { [administration] in await administration.run() }
      group.addTask(executorPreference: Loop.executor) { [companion] in await companion() }
      await server.run()
      group.cancelAll()
    }
  }

  /// Takes a certificate that was replaced, without waiting for the next look at it.
  package func renewCertificate() { server.renewCertificate() }

  /// Ends in good order, within `patience`: publishes what was read, and lets another process have the log.
  package func drain(within patience: Duration) async {
    let end = MonotonicTime.now + patience
    isDraining = true
    readiness.isFrozen = true
    readiness[.service] = .notReady(cause: "draining")
    logger.info("the audit log drains")
    work?.cancel()
    await work?.value
    await server.drain(within: max(end - .now, .zero))
    await administration.end()
    logger.info("the audit log ended")
  }

  private var logState: Readiness.State {
    if let cause = session?.signingFailure { return .notReady(cause: "checkpoints cannot be signed: \(cause)") }
    guard let session, session.isProven || !isOnProbation else { return .notReady(cause: failure) }
    guard metrics.waiting <= settings.interval + Self.patience else {
      return .notReady(cause: "what was read is not published: the disk takes too long")
    }
    return .ready
  }

  // MARK: Sessions

  /// Opens the log again and again, until the task is cancelled.
  private func write() async {
    while !Task.isCancelled {
      do {
        try await openAndWrite()
      } catch {
        if !Task.isCancelled { note(error) }
      }
      session = nil
      await journal.close()
      do { try await Loop.sleep(for: Self.pause) } catch { return }
    }
  }

  private func openAndWrite() async throws {
    try await journal.open(in: settings.directory, origin: settings.origin)
    if isAbsent { (failure, isAbsent) = (Self.untried, false) }
    try await expectOwnKey()
    try await IndexCatchUp(journal, reading: disk, logger: logger).run()
    let keys = SigningKeyBook(clock: SystemAlarmClock(), logger: logger, reading: sources.signingKeys)
    try await keys.read()
    let positions = try await journal.run { $0.readingPositions }
    let source = try sources.source()
    do {
      let reader = AuditReader(
        source, from: positions, surveyingEvery: AuditReader.surveyPause, now: now, metrics: metrics, logger: logger)
      let session = AuditSession(
        journal, reader, keys: keys, translation: sources.translation, signers: signers,
        witnesses: try await makeWitnesses(), every: settings.interval, metrics: metrics, logger: logger)
      self.session = session
      let size = try await journal.run { $0.size }
      logger.info("the audit log is open", ["log.size": .integer(size)])
      try await session.run()
    } catch {
      await source.close()
      throw error
    }
    await source.close()
  }

  /// Throws where the log's key was rotated to one that does not sign here: readers would believe no checkpoint any more.
  private func expectOwnKey() async throws {
    guard let history = try await disk.read(LogPath.keys, limit: KeyHistory.maximumByteCount),
      let newest = try KeyHistory.newestKey(in: history), !signers.keys.contains(newest)
    else { return }
    throw LogError(
      .conflict, LogPath.keys,
      "the log's key was rotated to \(newest), which does not sign here: see audit-log.private-key")
  }

  private func makeWitnesses() async throws -> WitnessRounds {
    let witnesses = settings.witnesses.map { witness in
      (
        name: witness.name, key: witness.key,
        client: WitnessClient(
          witness.url, key: witness.key, client: client, within: Self.witnessDeadline, source: disk)
      )
    }
    let size = try await witnessedSize()
    return WitnessRounds(
      witnesses, quorum: settings.quorum, witnessedSize: size, metrics: metrics, logger: logger
    ) { [journal] step in try await journal.publish(step) }
  }

  /// The size of the last checkpoint that enough witnesses have cosigned. A file that is damaged, or of another log, says
  /// nothing: the next one replaces it, and nothing else follows from it.
  private func witnessedSize() async throws -> UInt64? {
    let size = try await journal.run { $0.head.size }
    do throws(LogError) {
      guard let bytes = try await disk.read(LogPath.witnessed, limit: SignedNote.maximumByteCount) else { return nil }
      let checkpoint = try Checkpoint(SignedNote(bytes).text)
      // One that is larger would keep each that comes from taking its place.
      guard checkpoint.origin == settings.origin, checkpoint.size <= size else {
        throw LogError(.conflict, LogPath.witnessed, "\(checkpoint.size) entries of \(checkpoint.origin)")
      }
      return checkpoint.size
    } catch {
      logger.warning(
        "the last checkpoint that enough witnesses have cosigned is damaged: the next one takes its place",
        ["log.file": .string(LogPath.witnessed), "cause": .describing(error)])
      return nil
    }
  }

  /// Says why there is no session, where that is news, and what follows.
  private func note(_ error: any Error) {
    if let error = error as? SQLiteError, [.corrupt, .notADatabase, .unexpectedValue].contains(error.code) {
      logger.error("the audit log's index is damaged: it is made anew", ["cause": .describing(error)])
      AuditIndex.remove(in: settings.directory)
    }
    let code = (error as? LogError)?.code
    let isLocked = code == .locked
    isAbsent = code == .absent
    // At night, the first thing that is read is done.
    let advice = "; mount its volume, or, where there never was a log of this name, begin one: 'siwa audit begin'"
    let words = "\(error)\(isAbsent ? advice : "")"
    let isNews = failure != words || session?.isProven == true
    (failure, isOnProbation, session) = (words, !isLocked, nil)
    if isLocked { metrics.standBy() }
    // At once, not when it is looked at next: who reads of it finds it so.
    readiness.note(.log, logState, logger)
    guard isNews else { return }
    if isLocked {
      logger.info("another process writes the audit log: this one stands by")
    } else {
      logger.error("the audit log cannot go on: it is opened anew", ["cause": .string(words)])
    }
  }
}
