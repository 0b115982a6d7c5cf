import EventLoop
import Kafka
import Telemetry

/// The edges of a topic: what Kafka no longer has, and what begins anew, is said loudly and never passed over.
extension EventProcessor {
  /// How long the cluster may take to say what partitions hold: meanwhile nothing is read.
  private static let surveyLimit = Duration.seconds(5)
  /// How often it is asked about partitions that are ours.
  static let surveyPause = Duration.seconds(10)

  /// Asks where the group is in partitions that came, and whether they still hold what it is to read next; then they are
  /// ours.
  func welcome(_ partitions: Set<TopicPartition>) async {
    resumeWhatWasLeftPaused(partitions)
    guard let source, !isEnding else { return gain(partitions) }
    var places: [TopicPartition: PartitionContinuity] = [:]
    var committed: [TopicPartition: CommittedOffset] = [:]
    var extents: [TopicPartition: PartitionExtent] = [:]
    var isKnown = false
    do throws(KafkaError) {
      committed = try await source.commitments(of: partitions, within: Self.surveyLimit)
      isKnown = true
      for partition in partitions { places[partition] = PartitionContinuity(committed[partition]) }
      extents = try await source.extents(of: places.mapValues(\.times), within: Self.surveyLimit)
    } catch {
      logger.warning(
        "nobody can say whether records are missing where partitions came: those that are read are compared",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
    gain(partitions)
    var moving: [PartitionWork] = []
    for partition in partitions {
      guard let work = self.partitions[partition], !work.isLeaving else { continue }
      work.continuity = places[partition] ?? PartitionContinuity()
      work.committed = committed[partition]?.offset
      work.isUnknown = !isKnown
      guard let extent = extents[partition] else { continue }
      let finding = work.continuity.compare(with: extent)
      note(finding, of: partition)
      switch finding {
      case .goesOn, .begins: break
      case .missing(let range):
        work.progress = PartitionProgress(from: range.upperBound)
        planCommit()
      case .begunAnew:
        work.isMoving = true
        moving.append(work)
      }
    }
    await goBack(moving)
    planSurvey()
  }

  // MARK: While records are read

  /// Looks at a record that was read, and says whether it is to be begun with.
  func follow(_ record: ConsumedRecord, _ work: PartitionWork) -> Bool {
    if work.isMoving {
      // librdkafka may bring it before it says that it has gone back.
      guard record.position.offset == work.goal else { return false }
      work.isMoving = false
    }
    if work.recent.contains(record) { return false }
    if work.goal != nil, !work.hasGoneBackTwice, let next = work.continuity.next, record.position.offset > next {
      // Where librdkafka learns late what the group has committed, it goes there, behind what it was told.
      let new = beginAnew(work)
      new.hasGoneBackTwice = true
      Task(executorPreference: Loop.executor) { await self.goBack([new]) }
      return false
    }
    let finding = work.continuity.read(record.position.offset, time: record.timestamp)
    note(finding, of: work.partition)
    if case .begunAnew = finding {
      // Where librdkafka goes on may not be where the others begin, nor before all that is not done.
      let new = beginAnew(work)
      Task(executorPreference: Loop.executor) { await self.goBack([new]) }
      return false
    }
    work.recent.add(record)
    work.first = work.first ?? record.position.offset
    return true
  }

  /// Gives up what was under way of a partition that begins anew. Nothing is taken of it until `goBack`.
  private func beginAnew(_ work: PartitionWork) -> PartitionWork {
    let isPaused = work.isPaused
    let waiting = lanes.values.flatMap(\.passages).filter { $0.partition === work && !$0.isExecuting }
    work.isBegunAnew = true
    lose([work.partition])
    gain([work.partition])
    if isPaused { resumeWhatWasLeftPaused([work.partition]) }
    let new = partitions[work.partition] ?? PartitionWork(work.partition)
    new.continuity = work.continuity
    new.isMoving = true
    putAside(waiting.sorted { $0.offset < $1.offset })
    return new
  }

  /// Has partitions that begin anew read from their first record on, however often it takes: the ledger makes what was
  /// done already harmless.
  private func goBack(_ works: [PartitionWork]) async {
    let asked = works.filter(isToGoBack)
    guard let source, !asked.isEmpty else { return }
    do throws(KafkaError) {
      let times = [TopicPartition: Set<Int64>](uniqueKeysWithValues: asked.map { ($0.partition, []) })
      let extents = try await source.extents(of: times, within: Self.surveyLimit)
      var goals: [TopicPartition: Int64] = [:]
      for work in asked where isToGoBack(work) {
        guard let first = extents[work.partition]?.first else { continue }
        goals[work.partition] = first
        work.goal = first
        work.continuity.goBack(to: first)
        work.progress = PartitionProgress(from: first)
      }
      planCommit()
      if !goals.isEmpty { try await source.seek(to: goals, within: Self.surveyLimit) }
      for work in asked where goals[work.partition] != nil && isToGoBack(work) { work.isMoving = false }
    } catch {
      logger.warning(
        "partitions that begin anew could not be read from their first record on: it is tried again",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
    let left = asked.filter(isToGoBack)
    if left.isEmpty { return }
    agenda.after(Self.surveyPause) { [weak self] in
      guard let self else { return }
      Task(executorPreference: Loop.executor) { await self.goBack(left) }
    }
  }

  private func isToGoBack(_ work: PartitionWork) -> Bool {
    work.isMoving && !work.isLeaving && partitions[work.partition] === work
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
    let asked = partitions.filter { !$0.value.isLeaving && !$0.value.isMoving && $0.value.continuity.next != nil }
    let places = asked.mapValues(\.continuity)
    guard let source, !asked.isEmpty else { return }
    let extents: [TopicPartition: PartitionExtent]
    do throws(KafkaError) {
      extents = try await source.extents(of: places.mapValues(\.times), within: Self.surveyLimit)
    } catch {
      // Reading says itself what keeps it from going on; the next survey asks again.
      return logger.debug(
        "partitions could not be compared with what is read of them",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
    var moving: [PartitionWork] = []
    for (partition, extent) in extents {
      // What has gone on meanwhile has gone on from the place that was asked about, or has begun anew already.
      guard var place = places[partition], let work = asked[partition], partitions[partition] === work, !work.isLeaving
      else { continue }
      let finding = place.compare(with: extent)
      guard case .begunAnew = finding else {
        // What is missing is told where reading comes to it.
        work.continuity.isCompared(as: place)
        continue
      }
      note(finding, of: partition)
      let new = beginAnew(work)
      new.continuity = place
      moving.append(new)
    }
    await goBack(moving)
  }

  /// Asks what the group has committed where nobody could say so when partitions came.
  private func askWhatIsUnknown() async {
    let asked = partitions.values.filter { $0.isUnknown && !$0.isLeaving }
    guard let source, !asked.isEmpty else { return }
    let committed: [TopicPartition: CommittedOffset]
    do throws(KafkaError) {
      committed = try await source.commitments(of: Set(asked.map(\.partition)), within: Self.surveyLimit)
    } catch {
      return logger.debug(
        "nobody can say what the group has committed",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
    var moving: [PartitionWork] = []
    for work in asked where partitions[work.partition] === work && !work.isLeaving {
      work.isUnknown = false
      work.committed = committed[work.partition]?.offset
      var place = PartitionContinuity(committed[work.partition])
      guard let first = work.first else {
        work.continuity = place
        continue
      }
      let finding = place.read(first, time: nil)
      note(finding, of: work.partition)
      if case .begunAnew = finding { moving.append(beginAnew(work)) } else { work.continuity.isCompared(as: place) }
    }
    planCommit()
    await goBack(moving)
  }

  // MARK: What is said

  private func note(_ finding: PartitionContinuity.Finding, of partition: TopicPartition) {
    var metadata: LogMetadata = [
      "kafka.topic": .string(partition.topic), "kafka.partition": .integer(partition.partition),
    ]
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
    case .begunAnew(let place, let expected):
      metrics.countBegunAnew()
      metadata.set("kafka.offset", .integer(place))
      metadata.set("kafka.expectedOffset", .integer(expected))
      logger.error(
        "a partition's offsets begin again: its topic was made anew, or has lost its end; it is read from its first record on",
        metadata)
    }
  }
}
