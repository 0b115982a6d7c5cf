import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

extension EventProcessor {
  /// The consumer could not process the event.
  func fail(_ passage: Passage, _ error: any Error) {
    if isOver { return }
    let failure = ConsumerFailure(error)
    switch failure.consequence {
    case .permanent: bury(passage, failure)
    case .transient: failures.add((passage, failure))
    case .waiting:
      metrics.countRetry(failure.cause)
      retry(passage, after: failure.retryAfter)
    }
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
      if passage.attempts == bounds.alarmAfter {
        logger.error("an event cannot be processed, and is tried again and again", metadata(of: passage, failure))
      }
      let pause = bounds.retries.pause(after: passage.attempts, random: random())
      retry(passage, after: max(pause, failure.retryAfter))
    }
  }

  /// The event's lane waits, and begins anew with it.
  private func retry(_ passage: Passage, after pause: Duration) {
    passage.isExecuting = false
    endExecution(passage)
    if passage.partition.isLeaving {
      passage.isDropped = true
      passage.lane.passages.removeFirst()
      return advance(passage.lane)
    }
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
  func bury(_ passage: Passage, _ failure: ConsumerFailure) {
    logger.error("an event goes to the dead letters", metadata(of: passage, failure))
    let letter = DeadLetter(
      passage.record, consumer: consumer.name, cause: failure.cause, attempts: passage.attempts + 1, time: now())
    publish([Saying(letter.record)], of: passage.partition) { [self] isThere in
      endExecution(passage)
      if isThere {
        metrics.countDeadLetter(failure.cause)
        finish(passage)
      }
      leave(passage)
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
