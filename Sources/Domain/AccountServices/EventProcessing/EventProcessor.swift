package import AccountEvents
package import AccountStore
package import EventLoop
import Kafka
package import Telemetry

/// Leads records from Kafka to their effect, each exactly once.
///
/// The records of an account stand in a lane; the first of each lane is under way: the store is asked how it stands, the
/// consumer decides, the store writes the decision, what follows from it is announced, and then the record is done:
/// `RecordState` has all of it. The store is asked and written in groups of many lanes, two at once. What fails backs off
/// in its lane, and is tried again. A partition is committed up to its first record that is not done; so whatever was not
/// announced before a process ended comes again, and the ledger says what there is to announce.
@Loop
package final class EventProcessor {
  /// How many events go into one call of the store at most: the more there are, the more pages they share. A quarter of
  /// what may be in flight, so that the next ones are read and decided while they are being written.
  private static let group = 1024
  /// How far ahead of the broker's clock an event may be that nobody verifies. Clocks that are in order are nowhere near
  /// that.
  private static let mostBetweenClocks = Duration.seconds(86_400)

  let consumer: EventConsumer
  let store: any AccountStore
  /// Which store it is, as the group notes it.
  let storeIdentity: HashKeyID
  let log: any EventLog
  let bounds: ProcessingBounds
  let agenda: Agenda
  let random: @Sendable () -> Double
  let now: @Sendable () -> Timestamp
  let metrics: ConsumerMetrics
  let logger: Logger
  private let retries: String

  var source: (any EventSource)?
  var partitions: [TopicPartition: AssignedPartition] = [:]
  var lanes = Lanes<InFlightRecord>()
  var room: Room
  /// Partitions that began anew, with what was under way before: nobody else comes to it.
  var replaced: [AssignedPartition] = []
  /// The partitions by their share of the room.
  var roomers: [Room.ID: AssignedPartition] = [:]
  /// First records of their lanes that are to be begun with, and whether that is being done.
  private var beginning = FIFO<InFlightRecord>()
  private var isBeginning = false
  /// What may be processed, oldest first.
  var ready = FIFO<InFlightRecord>()
  var workers: [Int: Task<Void, Never>] = [:]
  var lastWorker = 0
  /// How many records the log is to take announcements of.
  private(set) var announcing = 0
  /// Whoever waits for room, or for what is being worked on.
  var waiting: [CheckedContinuation<Void, Never>] = []
  /// Partitions that were paused when they went: librdkafka keeps that for when they come back.
  var leftPaused: Set<TopicPartition> = []
  /// Whether reading goes well.
  var health = GroupHealth()
  /// Since when partitions of ours have no leader.
  var leaderlessSince: MonotonicTime?
  /// Whether the source is being waited for, and whether it has had nothing left to hand over since partitions were asked
  /// about last.
  var (isAwaiting, hasRunDry) = (false, false)
  /// What is to be told to the group, of its own accord.
  enum PlannedCommit { case none, planned, underWay, underWayAndPlanned }
  var plannedCommit = PlannedCommit.none
  var commitHealth = CommitHealth()
  var isSurveyPlanned = false
  var isStoreFailing = false
  /// Calls of the store that have failed and are made again and again, by their numbers: since when, and why.
  var failingCalls: [Int: (since: MonotonicTime, cause: String)] = [:]
  var lastCall = 0
  var isLogFailing = false
  /// How many calls of the store are under way beside the batches, and how many of all wait to be made again.
  var calls = 0, pausing = 0
  /// How many times marks are being raised for the last time, of partitions that go.
  var lastMarks = 0
  /// Whether nothing new is begun.
  var isEnding = false
  /// Whether nothing at all is done any more.
  var isOver = false

  private(set) lazy var questions = Batches<InFlightRecord>(upTo: Self.group, atOnce: 2) { [unowned self] in
    await ask($0)
  }
  private(set) lazy var settlements = Batches<InFlightRecord>(upTo: Self.group, atOnce: 2) { [unowned self] in
    await settle($0)
  }
  private(set) lazy var failures = Batches<(InFlightRecord, ConsumerFailure)>(upTo: Self.group) { [unowned self] in
    await count($0)
  }
  private(set) lazy var compositions = Batches<InFlightRecord>(upTo: Self.group) { [unowned self] in await compose($0) }
  private(set) lazy var restatements = Batches<Announcement>(upTo: Self.group) { [unowned self] in await restate($0) }

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
    storeIdentity = store.identity
    (self.agenda, self.random, self.now) = (agenda, random, now)
    (self.logger, metrics, room) = (logger, ConsumerMetrics(consumer, registry), Room(bounds))
    retries = Topic.retries(of: consumer.name).name
    metrics.observe(self, registry)
  }

  /// How many partitions are ours.
  package var partitionCount: Int { partitions.count }

  /// Whether nothing goes on but what waits for time, for the consumer, for the log or for records: for tests.
  package var isIdle: Bool {
    let underWay =
      questions.underWay + settlements.underWay + failures.underWay + compositions.underWay + restatements.underWay
    return underWay + calls == pausing && (ready.isEmpty || workers.count == bounds.concurrency)
  }

  /// Whether the log has all that follows from what is settled: for tests.
  package var isSilent: Bool { announcing == 0 }

  // MARK: Partitions

  /// These partitions are ours from now on.
  func gain(_ gained: Set<TopicPartition>) {
    for place in gained {
      let partition = AssignedPartition(place, room: room.add(), isOfRetries: place.topic == retries)
      partitions[place] = partition
      roomers[partition.room] = partition
      if isEnding {
        leave(partition)
        pause(room.pause([partition.room]))
      }
    }
  }

  private func leave(_ partition: AssignedPartition) {
    partition.life = .leaving
    room.leave(partition.room)
  }

  /// Nothing more is begun of these partitions; what is being worked on goes on.
  func prepareToLose(_ leaving: Set<TopicPartition>) {
    for place in leaving { partitions[place].map(leave) }
    dropWhatWaits()
  }

  /// These partitions are not ours any more.
  func lose(_ lost: Set<TopicPartition>) {
    for place in lost { if let partition = partitions[place] { remove(partition, .gone) } }
    dropWhatWaits()
    resume(room.resume())
    wake()
  }

  /// Takes a partition out of what is ours.
  func remove(_ partition: AssignedPartition, _ life: AssignedPartition.Life) {
    partition.life = life
    partitions[partition.place] = nil
    if room.isPaused(partition.room) { leftPaused.insert(partition.place) }
    resume(room.remove(partition.room))
    roomers[partition.room] = nil
    raiseLastMark(of: partition)
  }

  /// Begins nothing any more: what only waits is left to the next process.
  func beginToEnd() {
    isEnding = true
    for partition in partitions.values { leave(partition) }
    pause(room.close())
    dropWhatWaits()
  }

  /// Takes out of the lanes what only waits in partitions that go. What waited in one that began anew is put aside: Kafka
  /// may no longer have it. What it has is read again, and the ledger keeps it from having two effects.
  func dropWhatWaits() {
    let dropped = lanes.removeAll { $0.partition.isLeaving && !$0.state.isHolding }
    var letters: [InFlightRecord] = []
    for record in dropped.removed {
      record.lane = nil
      goOn(record)
      if record.partition.life == .replaced, hasSomethingToDo(record) {
        letters.append(record)
      } else {
        step(record, .given)
      }
    }
    for record in dropped.goOn { goOn(record) }
    ready.removeAll { $0.lane == nil }
    putAside(letters)
    begin(dropped.first)
  }

  // MARK: Records

  /// Begins with records, in their order.
  func take(_ records: [ConsumedRecord]) {
    var last: AssignedPartition?
    for record in records {
      // They come in runs of one partition.
      if last?.place.partition != record.position.partition || last?.place.topic != record.topic || last?.isGone == true
      {
        last = partitions[TopicPartition(record.topic, record.position.partition)]
      }
      guard let partition = last, !partition.isLeaving, follow(record, partition) else { continue }
      partition.progress.begin(record.position.offset, time: record.timestamp)
      room.begin(1, of: partition.room)
      let inFlight = InFlightRecord(record, of: partition)
      let key = RecordKey(bytes: record.key ?? Array("\0\(partition.place)".utf8))
      let (lane, isFirst, isBackingOff) = lanes.append(inFlight, key: key)
      inFlight.lane = lane
      if isBackingOff { backOff(inFlight) }
      if isFirst { begin([inFlight]) }
    }
    pause(room.pauseStuck())
  }

  /// Begins with records that are the first of their lanes, and with those that are so then.
  func begin(_ records: [InFlightRecord]) {
    for record in records { beginning.append(record) }
    // Not by recursion: there may be many of one account of which nothing is to be done.
    if isBeginning { return }
    isBeginning = true
    while let record = beginning.popFirst() { begin(record) }
    isBeginning = false
  }

  private func begin(_ record: InFlightRecord) {
    let partition = record.partition
    if partition.isLeaving {
      if partition.life == .replaced, hasSomethingToDo(record) {
        leaveLane(record)
        return putAside([record])
      }
      return step(record, .given)
    }
    if partition.life == .claiming { return partition.unclaimed.append(record) }
    do throws(EventDecodingError) {
      guard try read(record) else {
        metrics.count(.passedOver)
        return step(record, .needless)
      }
      if isAhead(record) {
        let words = "its clock was ahead of the broker's: retry it once that time is over"
        return bury(record, .permanent("ahead-of-time", detail: words), .unreadable)
      }
      step(record, isAskedAbout(record) ? .begun : .begunAtOnce)
    } catch {
      bury(record, .permanent(error.code.rawValue, detail: error.detail), .unreadable)
    }
  }

  /// Whether the store is asked about an event before anything else. Where a code under the store's key has to prove it, the
  /// store has to find out first whether there is a newer one.
  private func isAskedAbout(_ record: InFlightRecord) -> Bool {
    if case .outside = consumer.work { return true }
    guard let event = record.event else { return false }
    return event.kind.isOurOwn && hasToBeProven(record)
  }

  /// Whether a record has to prove what it says. An event of Apple's that is ahead of the broker's clock has to wherever it
  /// can be verified: believed, it would make void what happens until then.
  func hasToBeProven(_ record: InFlightRecord) -> Bool {
    guard consumer.verify != nil, let event = record.event else { return false }
    return consumer.verifies(event) || !event.kind.isOurOwn && isAhead(record, by: bounds.clockTolerance)
  }

  /// Whether what a record says was proven, or does not have to be, and its key and its headers, which nobody has signed,
  /// say the same.
  func isBelieved(_ record: InFlightRecord) -> Bool {
    guard let event = record.event, record.isProven || !hasToBeProven(record) else { return false }
    return record.record.key == event.account.key
      && record.record.headers.last { $0.name == "ce_id" }?.value == Array(event.id.text.utf8)
  }

  /// Whether an event is put aside for its time: one of our own of a clock that was ahead of the broker's, which is nobody's
  /// of ours, and one that nobody verifies and is far from any clock. It would make void whatever happens until then, and
  /// nobody could take that back. What Apple has provably signed is the ingress's to judge.
  private func isAhead(_ record: InFlightRecord) -> Bool {
    guard let event = record.event else { return false }
    if event.kind.isOurOwn { return isAhead(record, by: bounds.clockTolerance) }
    return consumer.verify == nil && isAhead(record, by: Self.mostBetweenClocks)
  }

  private func isAhead(_ record: InFlightRecord, by tolerance: Duration) -> Bool {
    guard let event = record.event, let time = record.record.timestamp else { return false }
    let latest = time.addingReportingOverflow(tolerance.wholeNanoseconds / 1_000_000)
    return !latest.overflow && event.occurredAt.milliseconds > latest.partialValue
  }

  /// Reads what a record says, once; false where the consumer has nothing to do with it.
  private func read(_ record: InFlightRecord) throws(EventDecodingError) -> Bool {
    if record.event != nil { return true }
    let event = try AccountEvent(decoding: record.record.value ?? [])
    guard let interest = consumer.interest(event) else { return false }
    let origin = EventOrigin(
      topic: record.partition.place.topic, partition: record.partition.place.partition, offset: record.offset)
    let account = event.account
    record.event = event
    record.reference = EventReference(
      id: event.id, account: account, hash: store.hash(of: account), occurredAt: event.occurredAt, origin: origin,
      weight: interest.weight, yieldsTo: interest.yieldsTo)
    return true
  }

  /// Whether there is something left to do about a record, as far as is known.
  private func hasSomethingToDo(_ record: InFlightRecord) -> Bool {
    // What nobody can read is for a person to look at.
    do throws(EventDecodingError) { return try read(record) } catch { return true }
  }

  /// Takes a step with a record, and does what follows.
  func step(_ record: InFlightRecord, _ step: RecordState.Step) {
    if record.state == .announcing { announcing -= 1 }
    let wasHolding = record.state.isHolding
    let action = record.step(step)
    if record.state == .announcing { announcing += 1 }
    if wasHolding, !record.state.isHolding { wake() }
    switch action {
    case .ask: questions.add(record)
    case .enlist:
      ready.append(record)
      startWorkers()
    case .process: if case .local(let decide) = consumer.work { self.decide(record, decide) }
    case .settle: settlements.add(record)
    case .announce, .bury: send(record)
    case .backOff: break
    case .beginAgain: begin([record])
    case .finish:
      finish(record)
      leaveLane(record)
    case .leave: leaveLane(record)
    }
  }

  /// The next of a record's lane begins.
  private func leaveLane(_ record: InFlightRecord) {
    guard let lane = record.lane else { return }
    record.lane = nil
    if let next = lanes.leave(lane) { begin([next]) }
  }

  /// The record is done, and nothing of it is left to do after a restart.
  private func finish(_ record: InFlightRecord) {
    let partition = record.partition
    if partition.isGone { return }
    partition.progress.finish(record.offset)
    resume(room.finish(partition.room))
    planCommit()
    wake()
  }

  // MARK: Backing off

  /// The record's lane waits for its next attempt.
  func backOff(_ record: InFlightRecord, for pause: Duration) {
    guard let lane = record.lane else { return }
    let records = lanes.backOff(lane)
    for record in records { backOff(record) }
    self.pause(room.pauseStuck())
    resume(room.resume())
    wake()
    agenda.after(pause) { [weak self] in
      guard let self, case .backingOff = record.state, let lane = record.lane else { return }
      for record in lanes.goOn(lane) { goOn(record) }
      begin([record])
    }
  }

  /// It waits for its next attempt, or behind an earlier one of its account that does.
  private func backOff(_ record: InFlightRecord) {
    if record.isBackingOff { return }
    record.isBackingOff = true
    if case .backingOff(let cause) = record.state { metrics.countWaiting(cause, 1) }
    if !record.partition.isGone { room.backOff(record.partition.room) }
  }

  /// It goes on, or is given up here.
  private func goOn(_ record: InFlightRecord) {
    guard record.isBackingOff else { return }
    record.isBackingOff = false
    if case .backingOff(let cause) = record.state { metrics.countWaiting(cause, -1) }
    if !record.partition.isGone { room.goOn(record.partition.room) }
  }
}
