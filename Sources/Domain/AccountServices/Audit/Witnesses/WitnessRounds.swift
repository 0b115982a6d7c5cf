package import EventLoop
package import Telemetry
package import TransparencyLog

/// Has checkpoints cosigned by the log's witnesses, each at its own pace: one that is away, slow or lies keeps neither the
/// log nor another one waiting.
@Loop
package final class WitnessRounds {
  /// A witness and the way to it.
  package typealias Witness = (name: String, key: VerifierKey, client: WitnessClient)

  /// How long a witness is left alone after a failure, at first and at most.
  package static let pace = RetryPace(first: .seconds(1), longest: .seconds(300))

  private let witnesses: [Witness]
  private let publish: @Loop (WitnessedCheckpoints.Step) async throws -> Void
  private let metrics: AuditMetrics
  private let logger: Logger
  private var checkpoints: WitnessedCheckpoints
  /// The size of the largest one that readers see with as many cosignatures as it has to have.
  private var shownSize: UInt64 = 0
  private var waiters: [CheckedContinuation<Void, Never>] = []

  /// Witnesses, and what is done with a checkpoint that gets a cosignature. `witnessedSize` is that of the last one that
  /// `quorum` of them have cosigned.
  package init(
    _ witnesses: [Witness], quorum: Int, witnessedSize: UInt64?, metrics: AuditMetrics, logger: Logger,
    publish: @escaping @Loop (WitnessedCheckpoints.Step) async throws -> Void
  ) {
    (self.witnesses, self.publish, self.metrics, self.logger) = (witnesses, publish, metrics, logger)
    checkpoints = WitnessedCheckpoints(witnesses.map(\.key), quorum: quorum, witnessedSize: witnessedSize)
    if let witnessedSize { noteShown(witnessedSize) }
  }

  private func noteShown(_ size: UInt64) {
    shownSize = max(shownSize, size)
    metrics.noteWitnessed(shownSize)
  }

  /// A checkpoint was published.
  package func announce(_ note: SignedNote, _ head: TreeHead) {
    guard !witnesses.isEmpty, head.size > 0 else { return }
    checkpoints.announce(note, head)
    wake()
  }

  /// Asks the witnesses until the task is cancelled.
  package func run() async {
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { group in
        for witness in witnesses {
          group.addTask(executorPreference: Loop.executor) { [self] in await ask(witness) }
        }
      }
    } onCancel: {
      Task { @Loop in wake() }
    }
  }

  /// Has one witness cosign each time one of the newest checkpoints, when it is done with the one before.
  private func ask(_ witness: Witness) async {
    var (size, failures, lastFailure) = (UInt64(0), 0, "")
    while let (head, note) = await next(from: size, isRefusing: failures > 1) {
      do {
        let answer = try await witness.client.cosign(note, head)
        let step = try checkpoints.add(answer, of: head.size)
        try await publish(step)
        if step.witnessed != nil { noteShown(head.size) }
        if failures > 0 { logger.info("a witness cosigns again", ["witness": .string(witness.name)]) }
        (size, failures, lastFailure) = (head.size + 1, 0, "")
      } catch {
        if Task.isCancelled { return }
        if case WitnessClient.Failure.ahead(_, let known) = error, checkpoints.next(from: known) != nil {
          // Somebody else gives it checkpoints, too, and later ones.
          size = known
          continue
        }
        // It may have cosigned it all the same, and takes none before it any more.
        size = head.size
        failures += 1
        metrics.countFailure(of: witness.name)
        if lastFailure != "\(error)" { complain(of: witness, error) }
        lastFailure = "\(error)"
        do { try await Loop.sleep(for: Self.pace.pause(after: failures, random: .random(in: 0...1))) } catch { return }
      }
    }
  }

  /// Waits for a checkpoint of at least `size` entries. Nil once the task is cancelled.
  func next(from size: UInt64, isRefusing: Bool = false) async -> (head: TreeHead, note: SignedNote)? {
    while !Task.isCancelled {
      if let next = checkpoints.next(from: size, isRefusing: isRefusing) { return next }
      await withCheckedContinuation { continuation in
        // A task that does not prefer the loop's executor has given way since it looked.
        if Task.isCancelled || checkpoints.next(from: size) != nil { return continuation.resume() }
        waiters.append(continuation)
      }
    }
    return nil
  }

  private func wake() {
    let woken = waiters
    waiters = []
    for waiter in woken { waiter.resume() }
  }

  private func complain(of witness: Witness, _ error: any Error) {
    let metadata: LogMetadata = ["witness": .string(witness.name), "cause": .string("\(error)")]
    if case WitnessClient.Failure.ahead = error {
      logger.error("a witness has seen a log that this one does not continue", metadata)
    } else {
      logger.warning("a witness did not cosign", metadata)
    }
  }
}
