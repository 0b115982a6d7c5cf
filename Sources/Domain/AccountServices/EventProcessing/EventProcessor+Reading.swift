import AccountStore
import EventLoop
package import Kafka
import Telemetry

/// The group and its partitions: what comes, what goes, how far they are, and for how much there is room.
extension EventProcessor {
  /// How many records are asked for at once.
  private static let most = 512
  /// How often the group is told how far we are.
  private static let commitPause = Duration.seconds(1)
  /// How long the group may take to be told.
  private static let commitLimit = Duration.seconds(10)
  private static let errorPause = Duration.milliseconds(250)
  private static let topicsLimit = Duration.seconds(2)
  /// How long is waited for room before what is full is paused: what librdkafka has read ahead of a paused partition is
  /// dropped, and read again. Meanwhile nothing is read, and nobody hears of partitions that come or go.
  static let patience = Duration.milliseconds(500)

  /// Reads and leads on what is read, until the task is cancelled or the source ends.
  ///
  /// Throws what the source cannot go on from: then all partitions are lost.
  package func read(from source: any EventSource) async throws(KafkaError) {
    // A new source has paused nothing yet.
    (self.source, leftPaused) = (source, [])
    while !Task.isCancelled {
      let left = await waitForRoom()
      do throws(KafkaError) {
        // One partition must not take the room of all others.
        let limit = min(left > 0 ? left : .max, Self.most, bounds.inFlightPerPartition)
        guard let event = try await nextEvent(of: source, upTo: limit) else { return }
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

  private func nextEvent(of source: any EventSource, upTo limit: Int) async throws(KafkaError) -> GroupEvent? {
    isAwaiting = true
    defer { isAwaiting = false }
    let event = try await source.nextEvent(upTo: limit)
    if case .records(let records) = event, records.count < limit { hasRunDry = true }
    return event
  }

  /// How it is with its share of the group's partitions.
  package func groupState() async -> Readiness.State {
    guard let source else { return health.state(isMember: false, at: agenda.now) }
    let state = health.state(isMember: source.isMember, at: agenda.now)
    guard state == .ready else { return state }
    var leaderless: Set<TopicPartition> = []
    do throws(KafkaError) {
      // librdkafka says only once that a topic may not be read, or is gone.
      leaderless = try await source.checkTopics(within: Self.topicsLimit).intersection(partitions.keys)
    } catch {
      // Where the cluster does not answer, another part says so.
      if error.code != .brokerUnavailable, error.code != .closed { return .notReady(cause: "\(error)") }
    }
    // One broker takes over from another within a moment.
    leaderlessSince = leaderless.isEmpty ? nil : leaderlessSince ?? agenda.now
    if let since = leaderlessSince, agenda.now - since < GroupHealth.patience { leaderless = [] }
    return obstacle(leaderless: leaderless).map { .notReady(cause: $0) } ?? .ready
  }

  private func note(readingFailed error: KafkaError?) {
    guard let error else { return health.succeeded() }
    metrics.countReadError(error.code)
    // librdkafka repeats some of them four times a second.
    if health.failed("\(error)", at: agenda.now) {
      logger.warning("reading failed, and goes on", error.metadata)
    } else {
      logger.debug("reading failed again", error.metadata)
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

  // MARK: Partitions that go

  /// Finishes what is being worked on, commits, and lets the partitions go.
  private func handOver(_ leaving: Set<TopicPartition>) async {
    let end = agenda.now + bounds.handover.whole
    prepareToLose(leaving)
    await finishWhatIsHeld(in: leaving, within: bounds.handover.work)
    let works = leaving.compactMap { partitions[$0] }
    let offsets = offsets(of: works)
    await raiseMarks(of: works, within: bounds.handover.mark)
    do throws(KafkaError) {
      try await source?.release(committing: offsets, within: max(end - agenda.now, bounds.handover.mark))
    } catch {
      logger.warning(
        "partitions went without a commit: the next member finds what is done in the store", error.metadata)
    }
    lose(leaving)
  }

  private func finishWhatIsHeld(in leaving: Set<TopicPartition>, within limit: Duration) async {
    await change(within: limit) {
      self.replaced.removeAll { $0.holding == 0 }
      return !leaving.contains { (self.partitions[$0]?.holding ?? 0) > 0 } && self.restatements.isIdle
        && !self.replaced.contains { self.isEnding || leaving.contains($0.place) }
    }
  }

  // MARK: Commits

  /// How far partitions are done, where the group does not know it yet.
  private func offsets(of some: some Sequence<AssignedPartition>) -> [TopicPartition: CommittedOffset] {
    var offsets: [TopicPartition: CommittedOffset] = [:]
    guard store.identity == storeIdentity else { return offsets }
    for partition in some {
      guard !partition.isUnknown, let offset = partition.progress.offset, offset != partition.committed else {
        continue
      }
      offsets[partition.place] = CommittedOffset(
        offset, note: CommitNote(partition.continuity, store: storeIdentity).text)
    }
    return offsets
  }

  /// Has the group told how far we are, soon: behind the commit that is under way, as what one took for done may reach the
  /// group behind what a later one did.
  func planCommit() {
    if isEnding { return }
    switch plannedCommit {
    case .planned, .underWayAndPlanned: return
    case .underWay: plannedCommit = .underWayAndPlanned
    case .none:
      plannedCommit = .planned
      agenda.after(Self.commitPause) { [weak self] in
        guard let self else { return }
        Task(executorPreference: Loop.executor) { await self.commitAsPlanned() }
      }
    }
  }

  private func commitAsPlanned() async {
    plannedCommit = .underWay
    await commit()
    let isPlanned = plannedCommit == .underWayAndPlanned
    plannedCommit = .none
    if isPlanned { planCommit() }
  }

  /// Tells the group how far we are: no farther than the store knows that all is announced.
  private func commit(isLast: Bool = false) async {
    let works = Array(partitions.values)
    var offsets = offsets(of: works)
    if isEnding {
      await raiseMarks(of: works, within: bounds.handover.mark)
    } else if await !raiseMarks(of: works) {
      noteFailedCommit(["cause": .string("the account store does not take how far the announcements are")])
      return planCommit()
    }
    // The last one says more.
    if isOver, !isLast { return }
    // Of one whose commits nobody knows, none may be made.
    if offsets.isEmpty, !works.contains(where: \.isUnknown) { _ = commitHealth.recover() }
    // One that began anew meanwhile is elsewhere, and what goes is committed on its way.
    for work in works where work.isGone || work.isLeaving && !isEnding { offsets[work.place] = nil }
    if offsets.isEmpty { return }
    do throws(KafkaError) {
      try await source?.commit(offsets, within: Self.commitLimit)
      for work in works { work.committed = offsets[work.place]?.offset ?? work.committed }
      if commitHealth.recover() { logger.notice("commits succeed again") }
    } catch {
      // Those that go are committed on their way. The others are tried again, whatever it was.
      logger.debug("a commit failed", error.metadata)
      noteFailedCommit(error.metadata)
      planCommit()
    }
  }

  private func noteFailedCommit(_ metadata: LogMetadata) {
    guard commitHealth.fail(at: agenda.now) else { return }
    logger.warning("commits fail: what is done may be read again", metadata)
  }

  /// Begins nothing more, finishes what is being worked on, within `patience` at most, and tells the group how far it is.
  /// Whoever reads goes on meanwhile, so that partitions can be handed over.
  package func end(within patience: Duration) async {
    let end = agenda.now + patience
    beginToEnd()
    await finishWhatIsHeld(in: Set(partitions.keys), within: patience)
    // Where somebody else has claimed a partition meanwhile, the truth is said before we go.
    await raiseMarks(of: Array(partitions.values), within: bounds.handover.mark)
    await change(within: max(end - agenda.now, .zero)) { self.restatements.isIdle }
    isOver = true
    for worker in workers.values { worker.cancel() }
    await commit(isLast: true)
  }

  // MARK: Room

  /// How many more records may be begun. Waits for a moment while so much goes on that none are to be, and has paused what
  /// is full still.
  private func waitForRoom() async -> Int {
    if room.isFull {
      // A few at a time would be read one by one.
      await change(within: Self.patience) { !self.room.isCrowded }
      pause(room.pauseFull())
    }
    return room.left
  }

  /// Suspends until that is so, `limit` at most.
  func change(within limit: Duration, until isSo: @Loop () -> Bool) async {
    if isSo() { return }
    let end = agenda.now + limit
    agenda.after(limit) { [weak self] in self?.wake() }
    while !isSo(), agenda.now < end {
      await withCheckedContinuation { waiter in
        // A task that does not prefer the loop has given way since it looked.
        if isSo() || agenda.now >= end { return waiter.resume() }
        waiting.append(waiter)
      }
    }
  }

  /// Lets those look who wait for a change.
  func wake() {
    if waiting.isEmpty { return }
    let woken = waiting
    waiting = []
    for continuation in woken { continuation.resume() }
  }

  /// Brings no records of these partitions until there is room again.
  func pause(_ ids: [Room.ID]) {
    let works = ids.compactMap { roomers[$0] }
    if works.isEmpty { return }
    tell { source throws(KafkaError) in try source.pause(Set(works.map(\.place))) }
    for work in works where room.isStuck(work.room) {
      var metadata = LogMetadata(of: work.place)
      metadata.set("events", .integer(room.backingOff(work.room)))
      logger.warning("too many events wait for their next attempt: nothing more is read of their partition", metadata)
    }
  }

  /// Goes on with what was paused.
  func resume(_ ids: [Room.ID]) {
    let works = ids.compactMap { roomers[$0] }
    if works.isEmpty { return }
    for work in works where room.isStuck(work.room) {
      logger.info("a partition is read on", LogMetadata(of: work.place))
    }
    tell { source throws(KafkaError) in try source.resume(Set(works.map(\.place))) }
  }

  /// Has those partitions read again that were paused when they went, and no others: what librdkafka has fetched of one
  /// that is resumed is dropped.
  func resumeWhatWasLeftPaused(_ gained: Set<TopicPartition>) {
    let paused = gained.intersection(leftPaused)
    if paused.isEmpty || isEnding { return }
    leftPaused.subtract(paused)
    tell { source throws(KafkaError) in try source.resume(paused) }
  }

  /// A source that does not do it has lost the partitions, or ends, and says so itself.
  private func tell(_ order: (any EventSource) throws(KafkaError) -> Void) {
    guard let source else { return }
    do throws(KafkaError) { try order(source) } catch {
      logger.warning("a partition could not be paused or resumed", error.metadata)
    }
  }
}

extension KafkaError {
  /// What the log says of it.
  var metadata: LogMetadata { ["kafka.error": .string(code.rawValue), "cause": .string(detail)] }
}

extension LogMetadata {
  /// Which partition is spoken of.
  init(of place: TopicPartition) {
    self = ["kafka.topic": .string(place.topic), "kafka.partition": .integer(place.partition)]
  }
}

extension Set<TopicPartition> {
  fileprivate var words: String { sorted().map(\.description).joined(separator: " ") }
}
