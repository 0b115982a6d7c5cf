package import AccountEvents
package import AccountStore
package import EventLoop
import Kafka
package import Telemetry

/// Leads records from Kafka to their effect, each exactly once.
///
/// The records of an account stand in a lane; the first of each lane is under way: the store is asked how it stands, the
/// consumer decides, the store writes the decision, what follows from it is published and forgotten, and then the record
/// is done. The store is asked and written in groups of many lanes. What fails waits in its lane, and is tried again.
/// A partition is committed up to its first record that is not done.
@Loop
package final class EventProcessor {
  /// How many steps go into one transaction of the store at most: the more there are, the more pages they share.
  private static let group = 4096

  let consumer: EventConsumer
  let store: any AccountStore
  let log: any EventLog
  let bounds: ProcessingBounds
  let agenda: Agenda
  let random: @Sendable () -> Double
  let now: @Sendable () -> Timestamp
  let metrics: ConsumerMetrics
  let logger: Logger
  let deadLetters: Topic

  var source: (any EventSource)?
  var partitions: [TopicPartition: PartitionWork] = [:]
  var lanes: [LaneKey: Lane] = [:]
  /// How many records are begun and not done, in all partitions.
  var held = 0
  /// How many of them wait for their next attempt, or behind one of their account that does.
  var parked = 0
  /// Whether all partitions were paused, there being no room.
  var pausesAll = false
  /// Whoever waits for room, or for what is being worked on.
  var waiting: [CheckedContinuation<Void, Never>] = []
  /// What may be processed, oldest first.
  var ready: [Passage] = []
  var workers: [Int: Task<Void, Never>] = [:]
  var lastWorker = 0
  var isCommitPlanned = false
  var isSurveyPlanned = false
  /// Partitions that were paused when they went: librdkafka keeps that for when they come back.
  private var leftPaused: Set<TopicPartition> = []
  /// Whether reading goes well.
  private(set) var health = GroupHealth()
  var isStoreFailing = false
  var isLogFailing = false
  /// How many calls of the store wait to be made again.
  var pausing = 0
  /// Whether nothing new is begun.
  private(set) var isEnding = false
  /// Whether nothing at all is done any more.
  var isOver = false

  private(set) lazy var standings = Batches<Passage>(upTo: Self.group) { [unowned self] in await ask($0) }
  private(set) lazy var settlements = Batches<Step>(upTo: Self.group) { [unowned self] in await settle($0) }
  private(set) lazy var failures = Batches<(Passage, ConsumerFailure)>(upTo: Self.group) { [unowned self] in
    await count($0)
  }
  private(set) lazy var republications = Batches<Publication>(upTo: Self.group) { [unowned self] in
    await publishAgain($0)
  }
  private(set) lazy var restatings = Batches<Announcement>(upTo: Self.group) { [unowned self] in await sayWhatIsTrue($0)
  }

  /// A processor of a consumer's events.
  ///
  /// - Parameters:
  ///   - log: Where announcements and dead letters go.
  ///   - agenda: The clock that pauses are measured with.
  ///   - random: Numbers from 0 to 1.
  package init(
    _ consumer: EventConsumer, store: any AccountStore, log: any EventLog, bounds: ProcessingBounds, agenda: Agenda,
    random: @escaping @Sendable () -> Double, now: @escaping @Sendable () -> Timestamp, registry: MetricsRegistry,
    logger: Logger
  ) {
    (self.consumer, self.store, self.log, self.bounds) = (consumer, store, log, bounds)
    (self.agenda, self.random, self.now) = (agenda, random, now)
    (self.logger, metrics) = (logger, ConsumerMetrics(consumer, registry))
    deadLetters = .deadLetters(of: consumer.name)
    metrics.observe(self, registry)
  }

  /// Notes that reading has failed, or that it has brought something.
  func note(readingFailed error: KafkaError?) {
    guard let error else { return health.succeeded() }
    metrics.countReadError(error.code)
    // librdkafka repeats some of them four times a second.
    let metadata: LogMetadata = ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)]
    if health.failed("\(error)", at: agenda.now) {
      logger.warning("reading failed, and goes on", metadata)
    } else {
      logger.debug("reading failed again", metadata)
    }
  }

  /// How it is with its share of the group's partitions.
  package func groupState() async -> Readiness.State {
    guard let source else { return health.state(isMember: false, at: agenda.now) }
    let state = health.state(isMember: source.isMember, at: agenda.now)
    guard state == .ready else { return state }
    do throws(KafkaError) {
      // librdkafka says only once that a topic may not be read, or is gone.
      try await source.checkTopics(within: Self.topicsLimit)
      return .ready
    } catch {
      // Where the cluster does not answer, another part says so.
      return error.code == .brokerUnavailable || error.code == .closed ? state : .notReady(cause: "\(error)")
    }
  }
  private static let topicsLimit = Duration.seconds(2)

  /// How many partitions are ours.
  package var partitionCount: Int { partitions.count }

  /// Whether nothing goes on but what waits for time, for the consumer, for the log or for records: for tests.
  package var isIdle: Bool {
    let batches = [
      standings.isIdle, settlements.isIdle, failures.isIdle, republications.isIdle, restatings.isIdle,
    ]
    let busy = batches.count { !$0 }
    return busy == pausing && (ready.isEmpty || workers.count == bounds.concurrency)
  }

  // MARK: Partitions

  /// These partitions are ours from now on.
  func gain(_ gained: Set<TopicPartition>) {
    for partition in gained {
      let work = PartitionWork(partition)
      partitions[partition] = work
      if isEnding {
        work.isLeaving = true
        pause([work])
      } else {
        reread(work)
      }
    }
  }

  /// A new source has paused nothing yet.
  func use(_ source: any EventSource) { (self.source, leftPaused) = (source, []) }

  /// Has those partitions read again that were paused when they went, and no others: what librdkafka has fetched of one
  /// that is resumed is dropped.
  func resumeWhatWasLeftPaused(_ gained: Set<TopicPartition>) {
    let paused = gained.intersection(leftPaused)
    if paused.isEmpty || isEnding { return }
    leftPaused.subtract(paused)
    tell { source throws(KafkaError) in try source.resume(paused) }
  }

  /// Nothing more is begun of these partitions; what is being worked on goes on.
  func prepareToLose(_ leaving: Set<TopicPartition>) {
    for partition in leaving { partitions[partition]?.isLeaving = true }
    dropWhatWaits()
  }

  /// These partitions are not ours any more.
  func lose(_ lost: Set<TopicPartition>) {
    for partition in lost {
      guard let work = partitions.removeValue(forKey: partition) else { continue }
      work.isLeaving = true
      work.isGone = true
      if work.isPaused { leftPaused.insert(partition) }
      held -= work.progress.count
    }
    dropWhatWaits()
    resumeWhatHasRoom()
    wake()
  }

  /// Begins nothing any more: what only waits is left to the next process.
  func beginToEnd() {
    isEnding = true
    for work in partitions.values { work.isLeaving = true }
    pause(Array(partitions.values))
    dropWhatWaits()
  }

  /// How far the partitions are done, where the group does not know it yet.
  func offsets(of some: some Sequence<PartitionWork>) -> [TopicPartition: CommittedOffset] {
    var offsets: [TopicPartition: CommittedOffset] = [:]
    for work in some {
      guard !work.isUnknown, let offset = work.progress.offset, offset != work.committed else { continue }
      offsets[work.partition] = CommittedOffset(offset, note: work.continuity.note)
    }
    return offsets
  }

  /// Takes out of the lanes what only waits in partitions that go.
  private func dropWhatWaits() {
    for lane in Array(lanes.values) {
      let first = lane.passages.first
      lane.passages.removeAll { passage in
        guard passage.partition.isLeaving, !passage.isExecuting else { return false }
        passage.isDropped = true
        unpark(passage)
        return true
      }
      if let first, first.isDropped {
        unpark(lane)
        advance(lane)
      }
    }
    ready.removeAll(where: \.isDropped)
  }

  // MARK: Records

  /// Begins with records, in their order.
  func take(_ records: [ConsumedRecord]) {
    var touched: [PartitionWork] = []
    for record in records {
      let offset = record.position.offset
      guard let work = partitions[TopicPartition(record.topic, record.position.partition)], !work.isLeaving,
        follow(record, work)
      else { continue }
      work.progress.begin(offset, time: record.timestamp)
      held += 1
      if touched.last !== work { touched.append(work) }
      let key = LaneKey(bytes: record.key ?? Array("\0\(work.partition)".utf8))
      let lane = lanes[key] ?? Lane(key)
      let passage = Passage(record, of: work, in: lane)
      lane.passages.append(passage)
      if lane.isParked { park(passage) }
      if lane.passages.count == 1 {
        lanes[key] = lane
        advance(lane)
      }
    }
    pauseWhatIsFull(touched)
  }

  /// Begins with the first record of a lane; goes on with the next where there is nothing to do about it.
  func advance(_ lane: Lane) {
    while let passage = lane.passages.first {
      if begin(passage) == .underWay { return }
      lane.passages.removeFirst()
    }
    if lanes[lane.key] === lane { lanes[lane.key] = nil }
  }

  /// The record's lane goes on.
  func leave(_ passage: Passage) {
    passage.isExecuting = false
    precondition(passage.lane.passages.first === passage, "a record is under way that is not the first of its lane")
    passage.lane.passages.removeFirst()
    advance(passage.lane)
  }

  /// The record is done, and nothing of it is left to do after a restart.
  func finish(_ passage: Passage) {
    let work = passage.partition
    if work.isGone { return }
    work.progress.finish(passage.offset)
    held -= 1
    madeRoom(in: work)
    planCommit()
    wake()
  }
}
