import EventLoop
import Kafka
import Telemetry

/// How much is held at once. What goes on, or could, has bounds of its own; what merely waits for its next attempt, or
/// behind such an event of its account, has wider ones, so that a target that refuses for hours holds up nobody else.
extension EventProcessor {
  /// How long a full processor waits for room before partitions are paused: what librdkafka has read ahead of a paused
  /// one is dropped and read again. Meanwhile nobody hears of partitions that come or go.
  static let patience = Duration.milliseconds(500)

  /// How many records go on, or could.
  var active: Int { held - parked }

  /// How many more records may be begun; waits for a moment while there are none.
  func room() async -> Int {
    if isFull {
      let end = agenda.now + Self.patience
      agenda.after(Self.patience) { [weak self] in self?.wake() }
      // A few at a time would be read one by one.
      while active > bounds.inFlight * 3 / 4 || parked >= bounds.waiting, agenda.now < end { await change() }
    }
    return isFull ? 0 : bounds.inFlight - active
  }

  private var isFull: Bool { active >= bounds.inFlight || parked >= bounds.waiting }

  /// Suspends until something was done.
  func change() async { await withCheckedContinuation { waiting.append($0) } }

  func wake() {
    if waiting.isEmpty { return }
    let woken = waiting
    waiting = []
    for continuation in woken { continuation.resume() }
  }

  // MARK: What waits

  /// The lane waits for the next attempt at its first event.
  func park(_ lane: Lane) {
    lane.isParked = true
    for passage in lane.passages { park(passage) }
    pauseWhatIsFull(lane.passages.map(\.partition))
    madeRoom(in: nil)
    wake()
  }

  /// It waits for that of an earlier one of its account, or for its own.
  func park(_ passage: Passage) {
    if passage.isParked { return }
    passage.isParked = true
    passage.partition.parked += 1
    parked += 1
  }

  /// The lane goes on.
  func unpark(_ lane: Lane) {
    guard lane.isParked else { return }
    lane.isParked = false
    for passage in lane.passages { unpark(passage) }
  }

  /// It goes on, or is given up here.
  func unpark(_ passage: Passage) {
    if let cause = passage.waitsFor { metrics.countWaiting(cause, -1) }
    passage.waitsFor = nil
    guard passage.isParked else { return }
    passage.isParked = false
    passage.partition.parked -= 1
    parked -= 1
  }

  // MARK: Partitions

  /// Pauses those of which too much is held.
  func pauseWhatIsFull(_ works: some Sequence<PartitionWork>) {
    pause(works.filter { $0.active >= bounds.inFlightPerPartition || $0.parked >= bounds.waitingPerPartition })
  }

  /// Brings no records of these partitions until there is room again.
  func pause(_ works: [PartitionWork]) {
    var paused: [PartitionWork] = []
    for work in works where !work.isPaused && !work.isGone {
      work.isPaused = true
      paused.append(work)
    }
    if paused.isEmpty { return }
    tell { source throws(KafkaError) in try source.pause(Set(paused.map(\.partition))) }
    for work in paused where work.parked >= bounds.waitingPerPartition || parked >= bounds.waiting {
      work.isStuck = true
      logger.warning(
        "too many events wait for their next attempt: nothing more is read of their partition",
        [
          "kafka.topic": .string(work.partition.topic), "kafka.partition": .integer(work.partition.partition),
          "events": .integer(work.parked),
        ])
    }
  }

  /// Goes on with what was paused, where there is room for it. `work` has fewer records than before; nil: some have.
  func madeRoom(in work: PartitionWork?) {
    let isWorthIt = pausesAll ? hasRoom : work.map { $0.isPaused && hasRoom(for: $0) } ?? true
    if isWorthIt { resumeWhatHasRoom() }
  }

  func resumeWhatHasRoom() {
    guard !isEnding, !pausesAll || hasRoom else { return }
    pausesAll = false
    let works = partitions.values.filter { $0.isPaused && !$0.isLeaving && hasRoom(for: $0) }
    if works.isEmpty { return }
    for work in works {
      work.isPaused = false
      guard work.isStuck else { continue }
      work.isStuck = false
      logger.info(
        "a partition is read on",
        ["kafka.topic": .string(work.partition.topic), "kafka.partition": .integer(work.partition.partition)])
    }
    tell { source throws(KafkaError) in try source.resume(Set(works.map(\.partition))) }
  }

  private var hasRoom: Bool { active <= bounds.inFlight / 2 && parked <= bounds.waiting * 7 / 8 }

  private func hasRoom(for work: PartitionWork) -> Bool {
    work.active <= bounds.inFlightPerPartition / 2 && work.parked <= bounds.waitingPerPartition * 7 / 8
  }

  /// A source that does not do it has lost the partitions, or ends, and says so itself.
  func tell(_ source: (any EventSource) throws(KafkaError) -> Void) {
    guard let current = self.source else { return }
    do throws(KafkaError) { try source(current) } catch {
      logger.warning(
        "a partition could not be paused or resumed",
        ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    }
  }
}
