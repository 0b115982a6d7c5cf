import EventLoop
package import Kafka
import Telemetry

extension EventProcessor {
  /// How many records are asked for at once.
  private static let most = 512
  /// How long a partition that goes may be finished with: nothing is read meanwhile, of no partition.
  package nonisolated static let handover = (in: Duration.seconds(2), atMost: Duration.seconds(5))
  /// How often the group is told how far we are.
  private static let commitPause = Duration.seconds(1)
  /// How long the group may take to be told.
  private static let commitLimit = Duration.seconds(10)
  private static let errorPause = Duration.milliseconds(250)

  /// Reads and leads on what is read, until the task is cancelled or the source ends.
  ///
  /// Throws what the source cannot go on from: then all partitions are lost.
  package func read(from source: any EventSource) async throws(KafkaError) {
    use(source)
    while !Task.isCancelled {
      let room = await room()
      if room <= 0 {
        pausesAll = true
        pause(Array(partitions.values))
      }
      do throws(KafkaError) {
        // One partition must not take the room of all others.
        let limit = min(room > 0 ? room : .max, Self.most, bounds.inFlightPerPartition)
        guard let event = try await source.nextEvent(upTo: limit) else { return }
        note(readingFailed: nil)
        await note(event)
      } catch {
        if error.isFatal {
          lose(Set(partitions.keys))
          throw error
        }
        note(readingFailed: error)
        await agenda.wait(Self.errorPause)
      }
    }
  }

  private func note(_ event: GroupEvent) async {
    switch event {
    case .records(let records): take(records)
    case .assigned(let partitions):
      logger.info("partitions came", ["kafka.partitions": .string(partitions.words)])
      await welcome(partitions)
    case .lost(let partitions):
      logger.warning("partitions were lost", ["kafka.partitions": .string(partitions.words)])
      lose(partitions)
    case .revoked(let partitions):
      await handOver(partitions)
      logger.info("partitions went", ["kafka.partitions": .string(partitions.words)])
    }
  }

  /// Finishes what is being worked on, commits, and lets the partitions go.
  private func handOver(_ leaving: Set<TopicPartition>) async {
    prepareToLose(leaving)
    await finishWhatIsExecuted(in: leaving, within: Self.handover.in)
    do throws(KafkaError) {
      try await source?.release(
        committing: offsets(of: leaving.compactMap { partitions[$0] }),
        within: Self.handover.atMost - Self.handover.in)
    } catch {
      logger.warning(
        "partitions went without a commit: the next member finds what is done in the store",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
    lose(leaving)
  }

  private func finishWhatIsExecuted(in leaving: Set<TopicPartition>, within limit: Duration) async {
    let end = agenda.now + limit
    agenda.after(limit) { [weak self] in self?.wake() }
    while leaving.contains(where: { (partitions[$0]?.executing ?? 0) > 0 }) || !restatings.isIdle, agenda.now < end {
      await change()
    }
  }

  // MARK: Commits

  /// Has the group told how far we are, soon.
  func planCommit() {
    if isCommitPlanned || isEnding { return }
    isCommitPlanned = true
    agenda.after(Self.commitPause) { [weak self] in
      guard let self else { return }
      Task(executorPreference: Loop.executor) { await self.commitAsPlanned() }
    }
  }

  private func commitAsPlanned() async {
    isCommitPlanned = false
    await commit()
  }

  /// Tells the group how far we are.
  func commit() async {
    let works = partitions.values.filter { !$0.isGone }
    let offsets = offsets(of: works)
    guard let source, !offsets.isEmpty else { return }
    do throws(KafkaError) {
      try await source.commit(offsets, within: Self.commitLimit)
      for work in works { work.committed = offsets[work.partition]?.offset ?? work.committed }
    } catch {
      // Those that go are committed on their way. The others come again.
      logger.debug(
        "a commit failed", ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
      if !isEnding, error.isRetriable || error.isUncertain { planCommit() }
    }
  }

  // MARK: The end

  /// Begins nothing more, finishes what is being worked on, within `patience` at most, and tells the group how far it is.
  /// Whoever reads goes on meanwhile, so that partitions can be handed over.
  package func end(within patience: Duration) async {
    beginToEnd()
    await finishWhatIsExecuted(in: Set(partitions.keys), within: patience)
    isOver = true
    for worker in workers.values { worker.cancel() }
    await commit()
  }
}

extension Set<TopicPartition> {
  fileprivate var words: String { sorted().map(\.description).joined(separator: " ") }
}
