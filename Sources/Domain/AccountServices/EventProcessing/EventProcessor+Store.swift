import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

/// What the store is asked and told, and what the consumer says in between.
extension EventProcessor {
  /// How long an account's events fail before one of them is given up for its age: who was away for days gives up nothing
  /// at the first refusal. So long, too, they wait before the log has an error.
  private static let longTrial = Duration.seconds(3600)
  static let storePace = RetryPace(first: .milliseconds(100), longest: .seconds(5))

  // MARK: How events stand

  /// Asks how events stand.
  func ask(_ batch: [InFlightRecord]) async {
    let records = batch.filter { $0.state == .asking }
    let events = records.compactMap(\.reference)
    guard !events.isEmpty,
      let standings = await persistently({ () throws(AccountStoreError) in
        try await store.standings(of: events, for: consumer.name)
      })
    else { return }
    for (record, standing) in zip(records, standings) where record.state == .asking {
      record.supersession = nil
      switch standing {
      case .open(let attempts):
        record.attempts = attempts
        step(record, .open)
      case .settled(let entry): repeated(record, entry)
      case .superseded(let cause) where consumer.looksAtVoid:
        record.supersession = cause
        step(record, .open)
      case .superseded: step(record, .void)
      }
    }
  }

  // MARK: The decision

  func startWorkers() {
    while workers.count < bounds.concurrency, let record = ready.popFirst() {
      lastWorker += 1
      let number = lastWorker
      // Until its worker has it, it may go with its partition.
      workers[number] = Task(executorPreference: Loop.executor) { await self.work(on: record, as: number) }
    }
  }

  /// Processes one event after another, as long as there are any.
  private func work(on first: InFlightRecord, as number: Int) async {
    var next: InFlightRecord? = first
    while let record = next {
      if record.state == .ready { await process(record) }
      next = ready.popFirst()
    }
    workers[number] = nil
  }

  private func process(_ record: InFlightRecord) async {
    step(record, .taken)
    guard let delivery = delivery(of: record), case .outside(let process) = consumer.work else { return }
    do {
      try prove(record, delivery)
      if let supersession = record.supersession {
        try await consumer.lookAtVoid?(delivery, supersession)
        step(record, .void)
      } else {
        decided(record, try await process(delivery))
      }
    } catch {
      fail(record, error)
    }
  }

  func decide(_ record: InFlightRecord, _ decide: EventConsumer.Decide) {
    guard let delivery = delivery(of: record) else { return }
    do {
      try prove(record, delivery)
      decided(record, try decide(delivery))
    } catch {
      fail(record, error)
    }
  }

  /// Throws where a record has to prove what it says, and does not.
  private func prove(_ record: InFlightRecord, _ delivery: Delivery) throws(ConsumerFailure) {
    guard let verify = consumer.verify, hasToBeProven(record) else { return }
    record.isProven = false
    try verify(record.record, delivery)
    record.isProven = true
  }

  private func delivery(of record: InFlightRecord) -> Delivery? {
    guard let event = record.event, let reference = record.reference else { return nil }
    return Delivery(event: event, failed: record.attempts, waits: record.waits, reference: reference)
  }

  private func decided(_ record: InFlightRecord, _ decision: Decision) {
    guard consumer.outcomes.contains(decision.outcome) else {
      return fail(record, ConsumerFailure.transient("undeclared-outcome", detail: decision.outcome))
    }
    record.decision = decision
    step(record, .decided)
  }

  // MARK: Settling

  /// Writes decisions, and how far partitions are announced, in one transaction.
  func settle(_ records: [InFlightRecord]) async { await settle(records[...], since: now()) }

  private func settle(_ records: ArraySlice<InFlightRecord>, since begin: Timestamp) async {
    let settlements = records.compactMap { record -> Settlement? in
      guard let event = record.reference else { return nil }
      guard let decision = record.decision else { return Settlement(ofVoid: event, by: consumer.name) }
      return Settlement(
        of: event, by: consumer.name, outcome: decision.outcome, detail: decision.detail, changes: decision.changes,
        steps: decision.steps)
    }
    var (time, marks, refusal) = (begin, [RaisedMark](), nil as AccountStoreError?)
    var isUncertain = false
    let settled = await persistently { () throws(AccountStoreError) -> Settled? in
      time = now()
      marks = marksToRaise(of: partitions.values, at: time)
      do throws(AccountStoreError) {
        return try await store.settle(settlements, announced: marks.map(\.mark), at: time)
      } catch {
        isUncertain = isUncertain || error.code == .uncertain
        if error.isTransient { throw error }
        refusal = error
        return nil
      }
    }
    if let settled = settled ?? nil {
      raised(marks, settled.fenced)
      for (record, outcome) in zip(records, settled.outcomes) {
        self.settled(record, outcome, at: time, uncertainSince: isUncertain ? begin : nil)
      }
    } else if let refusal {
      guard records.count > 1 else {
        let failure = ConsumerFailure.transient("store-\(refusal.code.rawValue)", detail: refusal.detail)
        return records.forEach { fail($0, failure) }
      }
      // One of them: the others must not wait for it.
      let middle = records.startIndex + records.count / 2
      await settle(records[..<middle], since: begin)
      await settle(records[middle...], since: begin)
    }
  }

  private func settled(
    _ record: InFlightRecord, _ outcome: SettledOutcome, at time: Timestamp, uncertainSince begin: Timestamp?
  ) {
    let decision = record.decision
    record.decision = nil
    record.lane.map { lanes.recovered($0) }
    func announce(_ outcome: String, _ detail: String) {
      self.announce(
        record, LedgerEntry(origin: record.reference?.origin, outcome: outcome, detail: detail, at: time))
    }
    switch outcome {
    case .applied:
      guard let decision else { return step(record, .settled(isToBeAnnounced: false)) }
      metrics.count(.decided(decision.outcome))
      announce(decision.outcome, decision.detail)
    case .repeated(let entry) where begin.map { isOurs(entry, of: record, decision, since: $0) } ?? false:
      metrics.count(.decided(entry.outcome))
      self.announce(record, entry)
    case .repeated(let entry): repeated(record, entry)
    case .superseded(let supersession):
      metrics.count(.superseded(supersession))
      announce(supersession.outcome, "")
    case .open:
      // What made it void has gone since the store was asked: a sign-in after an erasure has begun the account anew.
      step(record, .reopened)
    }
  }

  /// Whether an entry comes from the same settlement, which was tried again because nobody knew what became of it.
  private func isOurs(
    _ entry: LedgerEntry, of record: InFlightRecord, _ decision: Decision?, since begin: Timestamp
  ) -> Bool { entry.outcome == decision?.outcome && entry.origin == record.reference?.origin && entry.at >= begin }

  /// The event was settled before, by whomever: what follows from it may not have been announced.
  private func repeated(_ record: InFlightRecord, _ entry: LedgerEntry) {
    metrics.count(.repeated)
    // Another record of the same event is a duplicate: who has that one announces it.
    guard entry.origin == record.reference?.origin, !record.partition.wasAnnounced(record.offset, entry) else {
      return step(record, .settled(isToBeAnnounced: false))
    }
    announce(record, entry, isAgain: true)
  }

  // MARK: Failures

  /// The consumer could not process the event, or the store not write it.
  private func fail(_ record: InFlightRecord, _ error: any Error) {
    if isOver { return }
    record.decision = nil
    let failure = ConsumerFailure(error)
    if failure.consequence == .permanent { return bury(record, failure, .hopeless) }
    let isOld = isTooOld(record)
    if isOld, isTried(record) {
      record.lane.map { lanes.gaveUp($0) }
      return bury(record, failure, .hopeless, isGivenUp: true)
    }
    // Of one that is about to be given up the store notes when that trial began; otherwise waiting is no failure.
    if failure.consequence == .transient || isOld && record.attempts.since == nil {
      return failures.add((record, failure))
    }
    waits(record, failure)
  }

  /// Whether it has been tried for long enough; or one of its account before it, and none has succeeded since.
  private func isTried(_ record: InFlightRecord) -> Bool {
    if let lane = record.lane, lanes.hasGivenUp(lane) { return true }
    return record.attempts.since.map { now() - $0 >= Self.longTrial } ?? false
  }

  /// Whether the topic is about to forget the record, which is not committed.
  private func isTooOld(_ record: InFlightRecord) -> Bool {
    record.record.timestamp.map { .milliseconds(now().milliseconds - $0) >= bounds.giveUpAfter } ?? false
  }

  private func waits(_ record: InFlightRecord, _ failure: ConsumerFailure) {
    metrics.countRetry(failure.cause)
    record.waits += 1
    let since = record.waitsSince ?? agenda.now
    record.waitsSince = since
    let isLong = agenda.now - since >= Self.longTrial || record.lane.map { lanes.hasGivenUp($0) } ?? false
    if isLong, !record.isOverdue, !failure.isExpected {
      record.isOverdue = true
      logger.error("an event waits and waits", metadata(of: record, failure))
    }
    retry(record, after: failure.retryAfter, failure.cause)
  }

  /// Counts attempts that have failed, in the store, so that whoever has the partition next goes on counting.
  func count(_ batch: [(InFlightRecord, ConsumerFailure)]) async {
    let time = now()
    let attempts = batch.compactMap { record, failure in
      record.reference.map { FailedAttempt(at: $0, by: consumer.name, cause: failure.cause, time: time) }
    }
    var counted: [FailedAttempts]?
    // Where the store fails, too, the attempts are not worth waiting for.
    do throws(AccountStoreError) { counted = try await store.count(attempts) } catch { note(error) }
    for (index, (record, failure)) in batch.enumerated() {
      record.attempts =
        counted?[index]
        ?? FailedAttempts(count: record.attempts.count + 1, since: record.attempts.since ?? time)
      if failure.consequence != .transient {
        waits(record, failure)
        continue
      }
      metrics.countRetry(failure.cause)
      logger.warning("an event could not be processed", metadata(of: record, failure))
      // Others may have counted in between, or before it came here.
      if record.attempts.count >= bounds.alarmAfter, !record.isAlarmed {
        record.isAlarmed = true
        logger.error("an event cannot be processed, and is tried again and again", metadata(of: record, failure))
      }
      let pause = bounds.retries.pause(after: record.attempts.count, random: random())
      retry(record, after: max(pause, failure.retryAfter), failure.cause)
    }
  }

  /// The event's lane waits, and begins anew with it.
  private func retry(_ record: InFlightRecord, after pause: Duration, _ cause: String) {
    step(record, .failed(cause: cause))
    if record.partition.isLeaving { begin([record]) } else { backOff(record, for: pause) }
  }

  /// What the log says of an event: no personal data.
  func metadata(of record: InFlightRecord, _ failure: ConsumerFailure) -> LogMetadata {
    var metadata = LogMetadata(of: record.partition.place)
    metadata.set("event.id", .string(record.event?.id.text ?? ""))
    metadata.set("cause", .string(failure.cause))
    metadata.set("detail", .string(failure.detail))
    metadata.set("attempts", .integer(record.attempts.count))
    metadata.set("kafka.offset", .integer(record.offset))
    return metadata
  }

  // MARK: The store's failures

  /// Asks the store until it answers. Nil where nothing is done any more.
  func persistently<Value>(_ call: @Loop () async throws(AccountStoreError) -> Value) async -> Value? {
    var failures = 0
    lastCall += 1
    let number = lastCall
    defer { failingCalls[number] = nil }
    while !isOver {
      do throws(AccountStoreError) {
        let value = try await call()
        note(nil)
        return value
      } catch {
        note(error)
        failingCalls[number] = (failingCalls[number]?.since ?? agenda.now, error.detail)
        failures += 1
        await pause(Self.storePace, after: failures)
      }
    }
    return nil
  }

  /// How it is with what the store is asked: one that answers others may still fail at something for long, as on a full disk.
  package func storeState() -> Readiness.State {
    if store.identity != storeIdentity {
      return .notReady(cause: "the account store is another one than when this process started: nothing is committed")
    }
    if let (place, other) = foreignPartitions.first {
      return .notReady(
        cause:
          "the group has worked on \(place) with the account store \(other), and this one is \(storeIdentity): open "
          + "that one; where it is lost, see docs/account-store.md")
    }
    let stuck = failingCalls.values.filter { agenda.now - $0.since >= GroupHealth.patience }
    guard let oldest = stuck.min(by: { $0.since < $1.since }) else { return .ready }
    return .notReady(cause: "the account store fails again and again: \(oldest.cause)")
  }

  /// Waits before something is tried again.
  func pause(_ pace: RetryPace, after failures: Int) async {
    pausing += 1
    await agenda.wait(pace.pause(after: failures, random: 0.5 + random() / 2))
    pausing -= 1
  }

  func note(_ error: AccountStoreError?) {
    guard isStoreFailing != (error != nil) else { return }
    isStoreFailing = error != nil
    if let error {
      logger.warning(
        "the account store fails: events wait",
        ["store.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    } else {
      logger.info("the account store answers again")
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
