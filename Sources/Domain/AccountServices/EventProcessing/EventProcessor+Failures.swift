import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

extension EventProcessor {
  /// How long an account's events fail without one that succeeds before one of them is given up for its age: who was away
  /// for days gives up nothing at the first refusal. So long, too, they wait before the log has an error.
  static let longTrial = Duration.seconds(3600)

  /// The consumer could not process the event.
  func fail(_ passage: Passage, _ error: any Error) {
    if isOver { return }
    let failure = ConsumerFailure(error)
    if failure.consequence == .permanent { return bury(passage, failure) }
    let since = passage.lane.failingSince ?? agenda.now
    passage.lane.failingSince = since
    let isLong = agenda.now - since >= Self.longTrial
    if isLong, isTooOld(passage) { return bury(passage, failure, isGivenUp: true) }
    if failure.consequence == .transient { return failures.add((passage, failure)) }
    metrics.countRetry(failure.cause)
    passage.waits += 1
    if isLong, !passage.isOverdue, !failure.isExpected {
      passage.isOverdue = true
      logger.error("an event waits and waits", metadata(of: passage, failure))
    }
    retry(passage, after: failure.retryAfter, failure.cause)
  }

  /// Whether the topic is about to forget the record, which is not committed.
  private func isTooOld(_ passage: Passage) -> Bool {
    passage.record.timestamp.map { .milliseconds(now().milliseconds - $0) >= bounds.giveUpAfter } ?? false
  }

  /// Counts attempts that have failed, in the store, so that whoever has the partition next goes on counting.
  func count(_ batch: [(Passage, ConsumerFailure)]) async {
    for (passage, failure) in batch {
      passage.attempts += 1
      if let event = passage.subject?.reference {
        let attempt = FailedAttempt(at: event, by: consumer.name, cause: failure.cause, time: now())
        // Where the store fails, too, the attempt is not worth waiting for.
        do throws(AccountStoreError) { passage.attempts = try await store.countAttempt(attempt) } catch { note(error) }
      }
      metrics.countRetry(failure.cause)
      logger.warning("an event could not be processed", metadata(of: passage, failure))
      // Others may have counted in between, or before it came here.
      if passage.attempts >= bounds.alarmAfter, !passage.isAlarmed {
        passage.isAlarmed = true
        logger.error("an event cannot be processed, and is tried again and again", metadata(of: passage, failure))
      }
      let pause = bounds.retries.pause(after: passage.attempts, random: random())
      retry(passage, after: max(pause, failure.retryAfter), failure.cause)
    }
  }

  /// The event's lane waits, and begins anew with it.
  private func retry(_ passage: Passage, after pause: Duration, _ cause: String) {
    passage.isExecuting = false
    endExecution(passage)
    if passage.partition.isLeaving {
      putAside([passage])
      passage.isDropped = true
      passage.lane.passages.removeFirst()
      return advance(passage.lane)
    }
    passage.waitsFor = cause
    metrics.countWaiting(cause, 1)
    park(passage.lane)
    agenda.after(pause) { [weak self] in
      guard !passage.isDropped else { return }
      self?.unpark(passage.lane)
      self?.advance(passage.lane)
    }
  }

  /// What the log says of an event: no personal data.
  func metadata(of passage: Passage, _ failure: ConsumerFailure) -> LogMetadata {
    [
      "event.id": .string(passage.subject?.event.id.text ?? ""), "cause": .string(failure.cause),
      "detail": .string(failure.detail), "attempts": .integer(passage.attempts),
      "kafka.topic": .string(passage.record.topic), "kafka.partition": .integer(passage.record.position.partition),
      "kafka.offset": .integer(passage.offset),
    ]
  }

  // MARK: Dead letters

  /// Puts the record aside, for a person to look at; only then is it done.
  func bury(_ passage: Passage, _ failure: ConsumerFailure, isGivenUp: Bool = false) {
    logger.error(
      isGivenUp ? "an event is given up, and goes to the dead letters" : "an event goes to the dead letters",
      metadata(of: passage, failure))
    let letter = DeadLetter(
      passage.record, consumer: consumer.name, cause: failure.cause, attempts: passage.attempts + 1,
      isGivenUp: isGivenUp, time: now())
    publish([Saying(letter)], of: passage.partition) { [self] isThere in
      endExecution(passage)
      if isThere {
        metrics.countDeadLetter(failure.cause)
        finish(passage)
      }
      leave(passage)
    }
  }

  /// Puts records into the dead letters that wait in a partition that has begun anew: Kafka may no longer have them. Those
  /// that it has are read again, and the ledger keeps them from having two effects.
  func putAside(_ passages: [Passage]) {
    let cause = "topic-begun-anew"
    let left = passages.filter { $0.partition.isBegunAnew && isOpen($0) }
    guard let work = left.first?.partition else { return }
    logger.error(
      "events waited in a partition that has begun anew: they go to the dead letters",
      [
        "kafka.topic": .string(work.partition.topic), "kafka.partition": .integer(work.partition.partition),
        "events": .integer(left.count), "cause": .string(cause),
      ])
    for passage in left {
      let letter = DeadLetter(
        passage.record, consumer: consumer.name, cause: cause, attempts: passage.attempts,
        isGivenUp: false, time: now())
      publish([Saying(letter)], of: partitions[work.partition] ?? work) { [self] isThere in
        if isThere { metrics.countDeadLetter(cause) }
      }
    }
  }

  /// Whether there is something left to do about the record, as far as is known.
  private func isOpen(_ passage: Passage) -> Bool {
    if passage.isSettled { return false }
    if passage.subject != nil { return true }
    do throws(EventDecodingError) {
      return try subject(of: passage) != nil
    } catch {
      // For a person to look at.
      return true
    }
  }
}

extension ConsumerFailure {
  /// What a consumer has thrown. That the store is away is nobody's failed attempt.
  fileprivate init(_ error: any Error) {
    switch error {
    case let failure as ConsumerFailure: self = failure
    case let error as AccountStoreError where error.isTransient:
      self = .waiting("store-\(error.code.rawValue)", for: .seconds(1), detail: error.detail)
    case let error as AccountStoreError: self = .transient("store-\(error.code.rawValue)", detail: error.detail)
    default: self = .transient("unexpected", detail: "\(type(of: error))")
    }
  }
}
