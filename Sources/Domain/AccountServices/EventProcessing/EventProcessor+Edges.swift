import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

/// The edges of a topic: what Kafka no longer has, and what begins anew, is said loudly and never passed over.
extension EventProcessor {
  /// How long the cluster may take to say what partitions hold: meanwhile nothing is read.
  private static let surveyLimit = Duration.seconds(5)
  /// How often it is asked about partitions that are ours.
  private static let surveyPause = Duration.seconds(10)

  /// Asks where the group is in partitions that came, and whether they still hold what it is to read next; then they are
  /// ours.
  func welcome(_ places: Set<TopicPartition>) async {
    resumeWhatWasLeftPaused(places)
    guard let source, !isEnding else { return gain(places) }
    var continuities: [TopicPartition: PartitionContinuity] = [:]
    var committed: [TopicPartition: CommittedOffset] = [:]
    var extents: [TopicPartition: PartitionExtent] = [:]
    var isKnown = false
    do throws(KafkaError) {
      committed = try await source.commitments(of: places, within: Self.surveyLimit)
      isKnown = true
      for place in places { continuities[place] = PartitionContinuity(ofConsumer: committed[place]) }
      extents = try await source.extents(of: continuities.mapValues(\.times), within: Self.surveyLimit)
    } catch {
      logger.warning(
        "nobody can say whether records are missing where partitions came: those that are read are compared",
        error.metadata)
    }
    gain(places)
    // What is begun with in a partition of which nothing was committed would be noted as this store's.
    let isWithWrongStore = committed.values.contains(where: isForeign) || partitions.values.contains(where: \.isForeign)
    var (claimed, moving): ([AssignedPartition], [AssignedPartition]) = ([], [])
    for place in places {
      guard let partition = partitions[place], !partition.isLeaving else { continue }
      if isForeign(committed[place]) || committed[place] == nil && isWithWrongStore {
        refuse(partition, at: committed[place])
        continue
      }
      partition.continuity = continuities[place] ?? PartitionContinuity()
      partition.committed = committed[place]?.offset
      partition.isUnknown = !isKnown
      guard let finding = extents[place].map({ partition.continuity.compare(with: $0) }) else {
        claimed.append(partition)
        continue
      }
      note(finding, of: place)
      switch finding {
      case .goesOn, .begins: claimed.append(partition)
      case .missing(let range):
        partition.progress = PartitionProgress(from: range.upperBound)
        claimed.append(partition)
        planCommit()
      case .begunAnew:
        (partition.life, partition.timesMovedBack) = (.movingBack(to: nil), 1)
        moving.append(partition)
      }
    }
    if !claimed.isEmpty { claim(claimed, ends: extents) }
    await moveBack(moving)
    planSurvey()
  }

  // MARK: Another account store

  private func isForeign(_ committed: CommittedOffset?) -> Bool {
    committed.map { CommitNote($0.note).isForeign(to: storeIdentity) } ?? false
  }

  /// Takes nothing of a partition on which the group has worked with another account store.
  private func refuse(_ partition: AssignedPartition, at committed: CommittedOffset?) {
    let other = committed.flatMap { CommitNote($0.note).store }
    (partition.life, partition.committed) = (.foreign(store: other), committed?.offset)
    guard let committed, let other else { return }
    var metadata = LogMetadata(of: partition.place)
    metadata.set("kafka.offset", .integer(committed.offset))
    metadata.set("store.identity", .string(storeIdentity.description))
    metadata.set("store.expected", .string(other))
    logger.error(
      "the group has worked on a partition with another account store: nothing of it is processed with this one",
      metadata)
  }

  /// Gives up a partition that was taken before it was known that the group has worked with another account store.
  private func giveUp(_ partition: AssignedPartition, at committed: CommittedOffset) {
    let place = partition.place
    prepareToLose([place])
    lose([place])
    gain([place])
    if leftPaused.contains(place) { resumeWhatWasLeftPaused([place]) }
    if let new = partitions[place], !new.isLeaving { refuse(new, at: committed) }
  }

  /// The partitions on which the group has worked with another account store, and with which, in their order.
  var foreignPartitions: [(place: TopicPartition, store: String)] {
    partitions.values.compactMap { partition in
      if case .foreign(let store?) = partition.life { (partition.place, store) } else { nil }
    }.sorted { "\($0.0)" < "\($1.0)" }
  }

  // MARK: While records are read

  /// Looks at a record that was read, and says whether it is to be begun with.
  func follow(_ record: ConsumedRecord, _ partition: AssignedPartition) -> Bool {
    if partition.isForeign { return false }
    let offset = record.position.offset
    if case .movingBack(let goal) = partition.life {
      // librdkafka may bring it before it says that it has gone back.
      guard let goal, offset == goal else { return false }
      hasMovedBack(partition, to: goal)
    }
    if partition.recent.contains(record) { return false }
    if partition.timesMovedBack == 1, let next = partition.continuity.next, offset > next {
      // Where librdkafka learns late what the group has committed, it goes there, behind what it was told.
      beginAnew(partition, again: true)
      return false
    }
    let finding = partition.continuity.read(offset, time: record.timestamp)
    note(finding, of: partition.place)
    if case .begunAnew = finding {
      // Where librdkafka goes on may not be where the others begin, nor before all that is not done.
      beginAnew(partition)
      return false
    }
    partition.recent.add(record)
    partition.first = partition.first ?? offset
    return true
  }

  private func beginAnew(_ partition: AssignedPartition, again: Bool = false) {
    guard let new = replace(partition) else { return }
    if again { new.timesMovedBack = 2 }
    Task(executorPreference: Loop.executor) { await self.moveBack([new]) }
  }

  /// Gives up what was under way of a partition that begins anew. Nothing is taken of it until it has moved back.
  private func replace(_ old: AssignedPartition) -> AssignedPartition? {
    let place = old.place
    remove(old, .replaced)
    gain([place])
    if leftPaused.contains(place) { resumeWhatWasLeftPaused([place]) }
    guard let new = partitions[place] else { return nil }
    (new.continuity, new.timesMovedBack) = (old.continuity, 1)
    // What the group has committed may be another store's.
    new.isUnknown = old.isUnknown
    new.before = AnnouncedRecords(old.progress, until: now())
    if !new.isLeaving { new.life = .movingBack(to: nil) }
    dropWhatWaits()
    replaced.append(old)
    wake()
    return new
  }

  /// Has partitions that begin anew read from their first record on, however often it takes: the ledger makes what was
  /// done already harmless.
  private func moveBack(_ some: [AssignedPartition]) async {
    let asked = some.filter(isMovingBack)
    guard let source, !asked.isEmpty else { return }
    do throws(KafkaError) {
      let times = [TopicPartition: Set<Int64>](uniqueKeysWithValues: asked.map { ($0.place, []) })
      let extents = try await source.extents(of: times, within: Self.surveyLimit)
      var goals: [TopicPartition: Int64] = [:]
      for partition in asked where isMovingBack(partition) {
        guard let first = extents[partition.place]?.first else { continue }
        goals[partition.place] = first
        partition.life = .movingBack(to: first)
        partition.continuity.goBack(to: first)
        partition.progress = PartitionProgress(from: first)
      }
      planCommit()
      if !goals.isEmpty { try await source.seek(to: goals, within: Self.surveyLimit) }
      for partition in asked where isMovingBack(partition) {
        if let goal = goals[partition.place] { hasMovedBack(partition, to: goal) }
      }
    } catch {
      logger.warning(
        "partitions that begin anew could not be read from their first record on: it is tried again", error.metadata)
    }
    let left = asked.filter(isMovingBack)
    if left.isEmpty { return }
    agenda.after(Self.surveyPause) { [weak self] in
      guard let self else { return }
      Task(executorPreference: Loop.executor) { await self.moveBack(left) }
    }
  }

  private func isMovingBack(_ partition: AssignedPartition) -> Bool {
    guard case .movingBack = partition.life else { return false }
    return true
  }

  /// Offsets from there on are other records than those that were announced.
  private func hasMovedBack(_ partition: AssignedPartition, to goal: Int64) {
    partition.life = .claiming
    claim([partition], beginningAt: goal)
  }

  // MARK: From time to time

  /// Has partitions compared with what is read of them, from time to time: a topic that is made anew in a moment, and
  /// filled with more records than we have read, is not seen otherwise.
  private func planSurvey() {
    if isSurveyPlanned || isEnding { return }
    isSurveyPlanned = true
    agenda.after(Self.surveyPause) { [weak self] in
      guard let self else { return }
      Task(executorPreference: Loop.executor) { await self.surveyAsPlanned() }
    }
  }

  private func surveyAsPlanned() async {
    isSurveyPlanned = false
    await survey()
    if !partitions.isEmpty { planSurvey() }
  }

  private func survey() async {
    await askWhatIsUnknown()
    let asked = partitions.filter { !$0.value.isLeaving && !$0.value.isForeign && !isMovingBack($0.value) }
    let continuities = asked.mapValues(\.continuity)
    guard let source, !asked.isEmpty else { return }
    let extents: [TopicPartition: PartitionExtent]
    do throws(KafkaError) {
      extents = try await source.extents(of: continuities.mapValues(\.times), within: Self.surveyLimit)
    } catch {
      // Reading says itself what keeps it from going on; the next survey asks again.
      return logger.debug("partitions could not be compared with what is read of them", error.metadata)
    }
    note(extents, of: asked)
    var moving: [AssignedPartition] = []
    for (place, extent) in extents {
      // What has gone on meanwhile has gone on from the place that was asked about, or has begun anew already.
      guard var continuity = continuities[place], let partition = asked[place], !partition.isLeaving,
        continuity.next != nil
      else { continue }
      let finding = continuity.compare(with: extent)
      guard case .begunAnew = finding else {
        // What is missing is told where reading comes to it.
        partition.continuity.isCompared(as: continuity)
        continue
      }
      note(finding, of: place)
      guard let new = replace(partition) else { continue }
      new.continuity = continuity
      moving.append(new)
    }
    await moveBack(moving)
  }

  /// Notes whether partitions bring what they hold, and says where they cease to.
  private func note(_ extents: [TopicPartition: PartitionExtent], of asked: [TopicPartition: AssignedPartition]) {
    let isDry = isAwaiting || hasRunDry
    hasRunDry = false
    for (place, extent) in extents {
      guard let partition = asked[place], !partition.isLeaving else { continue }
      let wasSilent = silentEnd(of: partition) != nil
      partition.fetching.answered(
        extent, next: partition.continuity.next, fetchedEnd: source?.knownEnd(of: place),
        isAwaited: isDry && !room.isPaused(partition.room))
      guard let end = silentEnd(of: partition), !wasSilent else { continue }
      var metadata = LogMetadata(of: place)
      metadata.set("kafka.end", .integer(end))
      logger.warning("nothing comes of a partition, though it holds records", metadata)
    }
  }

  private func silentEnd(of partition: AssignedPartition) -> Int64? {
    partition.fetching.silentEnd(next: partition.continuity.next)
  }

  /// What keeps records of our partitions from us: that these of them have no leader, or that nothing comes; nil while
  /// nothing does.
  func obstacle(leaderless: Set<TopicPartition>) -> String? {
    let silent = partitions.compactMapValues(silentEnd)
    let obstructed = leaderless.isEmpty ? Set(silent.keys) : leaderless
    guard let place = obstructed.min() else { return nil }
    let more = obstructed.count > 1 ? " (and \(obstructed.count - 1) more)" : ""
    guard leaderless.isEmpty, let end = silent[place] else { return "\(place) has no leader\(more)" }
    return "\(place) brings nothing, though it ends at \(end): may its topic be read?\(more)"
  }

  /// Asks what the group has committed where nobody could say so when partitions came.
  private func askWhatIsUnknown() async {
    let asked = partitions.values.filter { $0.isUnknown && !$0.isLeaving }
    guard let source, !asked.isEmpty else { return }
    let committed: [TopicPartition: CommittedOffset]
    do throws(KafkaError) {
      committed = try await source.commitments(of: Set(asked.map(\.place)), within: Self.surveyLimit)
    } catch {
      return logger.debug("nobody can say what the group has committed", error.metadata)
    }
    var moving: [AssignedPartition] = []
    for partition in asked where !partition.isLeaving {
      if let committed = committed[partition.place], isForeign(committed) {
        giveUp(partition, at: committed)
        continue
      }
      partition.isUnknown = false
      partition.committed = committed[partition.place]?.offset
      if partition.timesMovedBack > 0 { continue }
      var continuity = PartitionContinuity(ofConsumer: committed[partition.place])
      guard let first = partition.first else {
        partition.continuity = continuity
        continue
      }
      let finding = continuity.read(first, time: nil)
      note(finding, of: partition.place)
      if case .begunAnew = finding {
        if let new = replace(partition) { moving.append(new) }
      } else {
        partition.continuity.isCompared(as: continuity)
      }
    }
    planCommit()
    await moveBack(moving)
  }

  // MARK: What is said

  private func note(_ finding: PartitionContinuity.Finding, of partition: TopicPartition) {
    var metadata = LogMetadata(of: partition)
    switch finding {
    case .goesOn: break
    case .begins(at: 0): break
    case .begins(let first):
      metrics.countBegunLate()
      metadata.set("kafka.offset", .integer(first))
      logger.warning(
        "the group has committed nothing in a partition whose first records are gone already: it begins behind them",
        metadata)
    case .missing(let range):
      let last = range.upperBound - 1
      metrics.countMissing(range.count)
      metadata.set("kafka.firstMissing", .integer(range.lowerBound))
      metadata.set("kafka.lastMissing", .integer(last))
      metadata.set("records", .integer(range.count))
      logger.error("records are missing that nobody has processed: Kafka no longer has them", metadata)
    case .begunAnew(let offset, let expected):
      metrics.countBegunAnew()
      metadata.set("kafka.offset", .integer(offset))
      metadata.set("kafka.expectedOffset", .integer(expected))
      logger.error(
        "a partition's offsets begin again: its topic was made anew, or has lost its end; it is read from its first record on",
        metadata)
    }
  }
}
