import AccountEvents
package import EventLoop
import Kafka
package import Telemetry
import TransparencyLog

/// One opening of the log: from the lock until something fails or the service ends.
///
/// Whatever fails, the session ends, and the next one goes on from what is durable: a failure is the same as a kill.
@Loop
package final class AuditSession {
  /// How many bytes of entries may wait in memory for the next checkpoint, whatever its interval.
  private static let mostWaiting = 32 << 20
  private static let pause = Duration.milliseconds(50)

  private let journal: JournalThread
  private let reader: AuditReader
  private let keys: SigningKeyBook
  private let translation: RecordTranslation
  private let signers: CheckpointSigners
  private let witnesses: WitnessRounds
  private let interval: Duration
  private let metrics: AuditMetrics
  private let logger: Logger
  private var health = GroupHealth()
  private var backlog = AuditJournal.Backlog()
  private let pulse = Pulse()
  /// Whether it has shown that it can go on: it has published something, or has read all that there is, and there was
  /// nothing to be logged.
  package private(set) var isProven = false
  /// Why the last checkpoint could not be signed; nil where it could.
  package private(set) var signingFailure: String?

  /// A session with a journal that is open and an index that has caught up.
  package init(
    _ journal: JournalThread, _ reader: AuditReader, keys: SigningKeyBook, translation: RecordTranslation,
    signers: CheckpointSigners, witnesses: WitnessRounds, every interval: Duration, metrics: AuditMetrics,
    logger: Logger
  ) {
    (self.journal, self.reader, self.keys, self.translation) = (journal, reader, keys, translation)
    (self.signers, self.witnesses, self.interval) = (signers, witnesses, interval)
    (self.metrics, self.logger) = (metrics, logger)
  }

  /// Reads, appends and publishes until the task is cancelled; then once more publishes what was appended. Throws what
  /// makes it impossible to go on.
  package func run() async throws {
    // The last process may have been ended before all witnesses had cosigned what it published.
    if let (note, head) = try await journal.run({ try $0.published }) {
      metrics.noteFound(head.size)
      witnesses.announce(note, head)
    }
    // A checkpoint may have been signed, and seen by a witness, that it could not publish any more.
    try await checkpoint(isLast: false)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: Loop.executor) { [self] in try await read() }
      group.addTask(executorPreference: Loop.executor) { [self] in
        while await pulse.next(within: interval) { try await checkpoint(isLast: false) }
      }
      group.addTask(executorPreference: Loop.executor) { [witnesses] in await witnesses.run() }
      // The first failure ends the others. Without a witness, one of them has nothing to do.
      for try await _ in group {}
    }
    try await checkpoint(isLast: true)
  }

  /// How it is with Kafka.
  var kafkaState: Readiness.State {
    reader.silence.map { .notReady(cause: $0.detail) } ?? health.state(isMember: true, at: .now)
  }

  // MARK: Reading

  private func read() async throws {
    while !Task.isCancelled {
      while backlog.bytes > Self.mostWaiting, !Task.isCancelled {
        pulse.hurry()
        await rest()
      }
      let batch: AuditReader.Batch
      do throws(KafkaError) { batch = try await reader.next() } catch {
        guard !error.isFatal else { throw error }
        metrics.countReadError()
        if health.failed(error.detail, at: .now) { logger.warning("reading from Kafka failed", error.metadata) }
        await rest()
        continue
      }
      health.succeeded()
      // There may be nothing yet because Kafka is slow.
      if batch.steps.isEmpty, backlog.isPublished, reader.hasReadAll {
        isProven = true
        // What the session before could not say to be published is.
        metrics.noteNothingWaits()
      }
      if !batch.steps.isEmpty || !batch.positions.isEmpty { try await take(batch) }
    }
  }

  /// Waits for a moment, or until the task is cancelled: then what was read is still to be published.
  private func rest() async {
    do { try await Loop.sleep(for: Self.pause) } catch { return }
  }

  /// Has a batch appended, and waits for keys of Apple's that it needs.
  private func take(_ batch: AuditReader.Batch) async throws {
    var (first, awaitsKeys) = (0, true)
    metrics.beginTaking()
    defer { metrics.endTaking() }
    while true {
      let (taken, backlog) = try await journal.run { [translation, ring = keys.ring, first, awaitsKeys] journal in
        let taken = try journal.take(batch, from: first, translation, keys: ring, awaitsKeys: awaitsKeys, at: .now)
        return (taken, journal.backlog)
      }
      metrics.count(taken)
      note(backlog)
      guard let stop = taken.stop else { break }
      first = stop.step
      awaitsKeys = await keys.renew(isKeyUnknown: stop.isKeyUnknown)
      // What nobody could wait for is read again, by the next process: a verdict stands for good.
      if Task.isCancelled { return }
    }
    if awaitsKeys { keys.succeeded() }
  }

  // MARK: Checkpoints

  /// Makes entries durable and publishes a checkpoint, where there is something that readers do not see.
  private func checkpoint(isLast: Bool) async throws {
    let (unpublished, flushed) = try await journal.run { (try $0.flush(isLast: isLast), $0.backlog) }
    note(flushed)
    guard let checkpoint = unpublished else { return }
    let signed: SignedNote
    do {
      signed = try await signers.sign(checkpoint)
      signingFailure = nil
    } catch {
      // The next one is of this size or larger.
      metrics.countSigningFailure()
      if signingFailure != "\(error)" {
        logger.error("a checkpoint could not be signed: readers see the one before", ["cause": .string("\(error)")])
      }
      signingFailure = "\(error)"
      return
    }
    let (isDone, published) = try await journal.run { [signed] in (try $0.publish(signed), $0.backlog) }
    guard isDone else { return }
    isProven = true
    metrics.notePublished(checkpoint.size)
    note(published)
    witnesses.announce(signed, checkpoint.head)
  }

  /// What the journal says of itself may come in another order than what was done with it.
  private func note(_ backlog: AuditJournal.Backlog) {
    if backlog.turn > self.backlog.turn { self.backlog = backlog }
    if !self.backlog.isPublished { metrics.noteWaiting() }
  }
}

/// A beat that comes after some time, or at once where somebody is in a hurry.
@Loop
private final class Pulse {
  private let deadline = Deadline()
  private var waiter: CheckedContinuation<Void, Never>?
  private var isHurried = false

  isolated deinit { deadline.invalidate() }

  /// Waits for the next beat. False where the task is cancelled.
  func next(within pause: Duration) async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if isHurried || Task.isCancelled { return continuation.resume() }
        waiter = continuation
        deadline.onPass { [weak self] in self?.beat() }
        deadline.set(.now + pause)
      }
    } onCancel: {
      Task { @Loop in beat() }
    }
    isHurried = false
    return !Task.isCancelled
  }

  func hurry() {
    isHurried = true
    beat()
  }

  private func beat() {
    deadline.clear()
    waiter?.resume()
    waiter = nil
  }
}
