import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

/// What is put onto the log: announcements, dead letters, and on compacted topics what is true by now.
///
/// A member that does not know yet that it has lost a partition may have something in its producer, which reaches the log
/// behind what the next member has said since. Nobody can take it back; so what is true now is said after it: where the
/// store says that somebody else has claimed the partition, where a report comes for one that is gone, and after an event
/// of the retries, whose account another member may have at the same time.
extension EventProcessor {
  private static let logPace = RetryPace(first: .milliseconds(100), longest: .seconds(5))

  // MARK: Announcements

  /// Puts onto the log what follows from an event. Where it was settled before, something newer may have been announced
  /// since: then a compacted topic gets what is true now.
  func announce(_ record: InFlightRecord, _ entry: LedgerEntry, isAgain: Bool = false) {
    guard let event = record.event, let reference = record.reference else {
      return step(record, .settled(isToBeAnnounced: false))
    }
    // The hashing key may have been replaced since the event was read.
    let hash = store.newest(of: reference.hash) ?? reference.hash
    let announcements = consumer.announcements(event, hash, entry)
    guard !announcements.isEmpty else { return step(record, .settled(isToBeAnnounced: false)) }
    let isCompacted = announcements.contains { $0.topic == consumer.compacted?.topic }
    let isToBeComposed = isCompacted && (isAgain || consumer.compacted?.isComposed(event) ?? false)
    record.outbound = Outbound(announcements, isToBeComposed: isToBeComposed)
    step(record, .settled(isToBeAnnounced: true))
  }

  /// Composes what compacted topics get of events that were settled before.
  func compose(_ batch: [InFlightRecord]) async {
    guard let compacted = consumer.compacted else { return }
    let asked = batch.flatMap { $0.outbound?.announcements ?? [] }.filter { $0.topic == compacted.topic }
    var rest = await truths(of: asked[...], compacted)[...]
    if isOver { return }
    for record in batch {
      let announcements = (record.outbound?.announcements ?? []).compactMap { announcement in
        announcement.topic == compacted.topic ? rest.removeFirst() : announcement
      }
      record.outbound = Outbound(announcements)
      send(record)
    }
  }

  // MARK: Sending

  /// Whether it is for this process to put something onto the log that follows from a partition's records.
  private func isOurs(_ partition: AssignedPartition) -> Bool {
    switch partition.life {
    case .gone: false
    // Nobody reads those records of a replaced one again.
    case .movingBack, .claiming, .owned, .foreign, .leaving, .replaced: true
    }
  }

  /// Puts a record's outbound ones onto the log, in their order; again from the first one on that it does not take, until
  /// it has all, or the partition is gone: then the next member does it.
  func send(_ record: InFlightRecord) {
    if isOver { return }
    if record.outbound?.isToBeComposed == true { return compositions.add(record) }
    guard isOurs(record.partition), let outbound = record.outbound else {
      // What the log has not acknowledged may be there all the same.
      if let outbound = record.outbound, outbound.failures > 0 { restate(again: outbound.announcements) }
      record.outbound = nil
      return step(record, .orphaned)
    }
    record.outbound?.isGiven()
    if let letter = outbound.letter {
      // It is shortened only where it is refused by itself.
      log.append(aloneIfRefused: letter) { [weak self] in self?.reported(record, 0, $0) }
    }
    for (index, announcement) in outbound.unsaid.enumerated() {
      log.append(announcement) { [weak self] in self?.reported(record, index, $0) }
    }
  }

  private func reported(_ record: InFlightRecord, _ index: Int, _ result: Result<EventLogPosition, EventLogError>) {
    note(result)
    guard record.outbound?.note(result, of: index) == true else { return }
    guard record.outbound?.firstFailed != nil else { return acknowledged(record) }
    record.outbound?.beginAgain()
    let pause = Self.logPace.pause(after: record.outbound?.failures ?? 1, random: 0.5 + random() / 2)
    agenda.after(pause) { [weak self] in self?.send(record) }
  }

  /// The log has all that follows from a record.
  private func acknowledged(_ record: InFlightRecord) {
    guard let outbound = record.outbound else { return }
    record.outbound = nil
    if record.state == .burying {
      metrics.countDeadLetter(outbound.cause)
    } else if let compacted = consumer.compacted {
      let partition = record.partition
      if partition.isOfRetries || !isOurs(partition) { restate(again: outbound.announcements) }
      if partition.isOfRetries {
        // What is under way in another member's producer has come, or never does, by then.
        agenda.after(ConsumerSettings.logDeadline) { [weak self] in self?.restate(again: outbound.announcements) }
      }
      for announcement in outbound.announcements where announcement.topic == compacted.topic {
        partition.note(said: announcement)
      }
    }
    step(record, .acknowledged)
  }

  /// Tells when the log begins to fail, and when it takes records again.
  private func note(_ report: Result<EventLogPosition, EventLogError>) {
    switch report {
    case .success:
      guard isLogFailing else { return }
      isLogFailing = false
      logger.info("the log takes records again")
    case .failure(let error):
      guard !isLogFailing else { return }
      isLogFailing = true
      logger.warning(
        "the log does not take what is to be said: it is tried again",
        ["reason": .string(error.reason), "detail": .string(error.detail)])
    }
  }

  // MARK: Restating

  /// Has said what is true now of the keys of these, which may stand behind newer ones on their compacted topic.
  func restate(again announcements: [Announcement]) {
    guard let compacted = consumer.compacted, !isOver else { return }
    for announcement in announcements where announcement.topic == compacted.topic { restatements.add(announcement) }
  }

  /// Says what is true now of each key, until the store, asked afterwards, knows of nothing newer.
  func restate(_ batch: [Announcement]) async {
    guard let compacted = consumer.compacted else { return }
    var said: [RecordKey: Announcement] = [:]
    var keys: Set<RecordKey> = []
    var open = Array(batch.reversed().filter { keys.insert(RecordKey(bytes: $0.key)).inserted }.reversed())
    while !open.isEmpty {
      open = await truths(of: open[...], compacted).compactMap(\.self).filter { said[RecordKey(bytes: $0.key)] != $0 }
      guard await isSaid(open) else { break }
      for truth in open {
        said[RecordKey(bytes: truth.key)] = truth
        metrics.countRestated()
      }
    }
    wake()
  }

  /// What is true now of each, in their order; nil of what nobody can read, and of all where nothing is done any more.
  private func truths(
    of some: ArraySlice<Announcement>, _ compacted: EventConsumer.Compacted
  ) async -> [Announcement?] {
    var refusal: AccountStoreError?
    let truths = await persistently { () throws(AccountStoreError) -> [Announcement]? in
      do throws(AccountStoreError) {
        return try await compacted.restate(Array(some))
      } catch {
        if error.isTransient || error.code == .closed { throw error }
        refusal = error
        return nil
      }
    }
    guard let refusal else { return (truths ?? nil)?.map(\.self) ?? some.map { _ in nil } }
    if some.count > 1 {
      // One of them: the others must not wait for it.
      let middle = some.startIndex + some.count / 2
      return await self.truths(of: some[..<middle], compacted) + self.truths(of: some[middle...], compacted)
    }
    logger.error(
      "what is known of an account cannot be read, and is not said: ask siwa store integrity",
      ["store.error": .string(refusal.code.rawValue), "cause": .string(refusal.detail)])
    return [nil]
  }

  /// Puts announcements onto the log, however often it takes; false where nothing is done any more.
  private func isSaid(_ announcements: [Announcement]) async -> Bool {
    var (open, failures) = (announcements, 0)
    pausing += 1
    defer { pausing -= 1 }
    while !isOver, !open.isEmpty {
      let asked = open
      open = await withCheckedContinuation { asker in
        var (unreported, failed) = (asked.count, [Announcement]())
        for announcement in asked {
          log.append(announcement) { result in
            if case .failure = result { failed.append(announcement) }
            unreported -= 1
            if unreported == 0 { asker.resume(returning: failed) }
          }
        }
      }
      if open.isEmpty { break }
      failures += 1
      await agenda.wait(Self.logPace.pause(after: failures, random: 0.5 + random() / 2))
    }
    return open.isEmpty
  }

  // MARK: Dead letters

  /// Puts the record aside, for a person to look at; only then is it done.
  func bury(_ record: InFlightRecord, _ failure: ConsumerFailure, _ step: RecordState.Step, isGivenUp: Bool = false) {
    logger.error(
      isGivenUp ? "an event is given up, and goes to the dead letters" : "an event goes to the dead letters",
      metadata(of: record, failure))
    let letter = DeadLetter(
      record.record, consumer: consumer.name, cause: failure.cause, attempts: record.attempts.count + 1,
      isBelieved: isBelieved(record), isGivenUp: isGivenUp, time: now())
    record.outbound = Outbound(letter, cause: isGivenUp ? ConsumerMetrics.givenUp : failure.cause)
    self.step(record, step)
  }

  /// Puts records into the dead letters that waited in a partition that has begun anew: Kafka may no longer have them.
  func putAside(_ records: [InFlightRecord]) {
    guard let place = records.first?.partition.place else { return }
    let cause = "topic-begun-anew"
    var metadata = LogMetadata(of: place)
    metadata.set("events", .integer(records.count))
    metadata.set("cause", .string(cause))
    logger.error("events waited in a partition that has begun anew: they go to the dead letters", metadata)
    for record in records.sorted(by: { $0.offset < $1.offset }) {
      let letter = DeadLetter(
        record.record, consumer: consumer.name, cause: cause, attempts: record.attempts.count,
        isBelieved: isBelieved(record), isGivenUp: false, time: now())
      record.outbound = Outbound(letter, cause: cause)
      step(record, .hopeless)
    }
  }
}
