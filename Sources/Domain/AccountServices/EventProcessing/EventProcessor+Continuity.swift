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
    do throws(KafkaError) {
      committed = try await source.commitments(of: partitions, within: Self.surveyLimit)
      for partition in partitions { places[partition] = PartitionContinuity(committed[partition]) }
      extents = try await source.extents(of: places.mapValues(\.times), within: Self.surveyLimit)
    } catch {
      logger.warning(
        "nobody can say whether records are missing where partitions came: those that are read are compared",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
    gain(partitions)
    var seeks: [TopicPartition: Int64] = [:]
    for partition in partitions {
      guard let work = self.partitions[partition], !work.isLeaving else { continue }
      work.continuity = places[partition] ?? PartitionContinuity()
      work.committed = committed[partition]?.offset
      guard let extent = extents[partition] else { continue }
      let finding = work.continuity.compare(with: extent)
      note(finding, of: partition)
      switch finding {
      case .goesOn, .begins: break
      case .missing(let range):
        work.progress = PartitionProgress(from: range.upperBound)
        planCommit()
      case .begunAnew(let place, _):
        work.progress = PartitionProgress(from: place)
        seeks[partition] = place
        planCommit()
      }
    }
    await seek(to: seeks)
    planSurvey()
  }

  // MARK: While records are read

  /// Looks at a record that was read. The work to go on with is another one where the offsets begin again.
  func follow(_ record: ConsumedRecord, _ work: PartitionWork) -> PartitionWork {
    let finding = work.continuity.read(record.position.offset, time: record.timestamp)
    note(finding, of: work.partition)
    guard case .begunAnew = finding else { return work }
    return beginAnew(work)
  }

  /// Gives up what was under way of a partition that begins anew, and goes on with it from nothing.
  private func beginAnew(_ work: PartitionWork) -> PartitionWork {
    let isPaused = work.isPaused
    lose([work.partition])
    gain([work.partition])
    if isPaused { resumeWhatWasLeftPaused([work.partition]) }
    let new = partitions[work.partition] ?? PartitionWork(work.partition)
    new.continuity = work.continuity
    return new
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
    let asked = partitions.filter { !$0.value.isLeaving && $0.value.continuity.next != nil }
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
    var seeks: [TopicPartition: Int64] = [:]
    for (partition, extent) in extents {
      // What has gone on meanwhile has gone on from the place that was asked about, or has begun anew already.
      guard var place = places[partition], let work = asked[partition], partitions[partition] === work, !work.isLeaving
      else { continue }
      let finding = place.compare(with: extent)
      guard case .begunAnew(let first, _) = finding else {
        // What is missing is told where reading comes to it.
        work.continuity.isCompared(as: place)
        continue
      }
      note(finding, of: partition)
      let new = beginAnew(work)
      new.continuity = place
      // Nothing is taken until what librdkafka has read ahead is dropped.
      new.isMoving = true
      seeks[partition] = first
    }
    let moving = seeks.keys.compactMap { partitions[$0] }
    await seek(to: seeks)
    for work in moving { work.isMoving = false }
  }

  private func seek(to offsets: [TopicPartition: Int64]) async {
    guard let source, !offsets.isEmpty else { return }
    do throws(KafkaError) {
      try await source.seek(to: offsets, within: Self.surveyLimit)
    } catch {
      // Where the partition is still ours, reading goes on behind these records, which are then found missing.
      logger.warning(
        "partitions that begin anew could not be read from there",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
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
        "a partition's offsets begin again: its topic was made anew, or has lost its end; it is processed from there",
        metadata)
    }
  }
}
