package import AccountEvents
package import EventLoop
package import Telemetry

/// Takes records, and answers for them: what it accepted is on the log or in the spool, whatever is killed and whenever.
///
/// A record goes to the log. Where the log does not acknowledge it in time, the spool takes it too; its way to the log
/// goes on meanwhile, and what is acknowledged late leaves the spool again. While the log fails, the spool takes records
/// at once. `drain` brings what the spool holds to the log.
///
/// The order of an account's records holds, because one of them at a time is on its way: the next follows when the first
/// is acknowledged, or queues in the spool behind it. So a record may stand on the log twice, directly one after the
/// other, and never behind a later one of its account. That is the order of what was accepted, within one process: what two
/// processes accept of one account stands on the log in no order. `AccountLane` has all states and steps; what they say is done
/// here.
@Loop
package final class EventPublisher {
  /// What became of a record that was accepted.
  package enum Acceptance: Sendable, Equatable {
    /// Every in-sync replica has it.
    case published(EventLogPosition)
    /// The spool has it; the log will.
    case spooled
    /// It was accepted before: nothing was done.
    case repeated
  }

  let log: any EventLog
  let spool: Spool
  let metrics: PublicationMetrics
  let logger: Logger
  private let (patience, spoolPatience): (Duration, Duration)
  private let deadline: Duration
  private let accepted: AcceptedEvents
  var lanes: AccountLanes<Submission>
  /// Lanes whose place may be free, and whether somebody is let in at the moment.
  private var (free, isLettingIn) = (FIFO<LaneID>(), false)
  /// What the log was given, in the order in which it runs out of patience.
  private var patient = FIFO<Submission>()
  private let alarm = Deadline()
  /// How many are not answered; and how many answers are to come, with those of the log and of the spool.
  private var (unanswered, pending) = (0, 0)
  /// Those that wait for the end.
  private var idle: [CheckedContinuation<Void, Never>] = []
  private(set) var isClosing = false
  /// Whether the log fails or is late, and acknowledges nothing.
  private(set) var isLogSuspect = false
  /// When the log failed last while it was suspect.
  private var lastFailed: MonotonicTime?
  private var lastAcknowledged: MonotonicTime?
  /// What the spool holds and the log refuses: each is logged once, and tried again and again.
  private var refused: Set<Int64> = []
  /// The drain, while there is nothing to do.
  var drainer: CheckedContinuation<Void, Never>?
  /// Whether there may be something to do since the drain has waited last.
  var isDrainWoken = false
  let drainAlarm = Deadline()

  /// A publisher that has what the last run left in the spool.
  ///
  /// - Parameters:
  ///   - accepted: What was accepted before, so that it is not accepted twice. It learns what the spool holds.
  ///   - patience: How long the log may take before the spool has the record too, or before others from the spool are given
  ///     to it beside one that it has not acknowledged.
  ///   - deadline: How long whoever publishes waits where the spool does not take it either.
  ///   - spoolPatience: How long the spool may take at least, before it counts as one that takes nothing.
  ///   - pace: How long an account is left alone whose record the log did not take.
  package init(
    log: any EventLog, spool: Spool, accepted: AcceptedEvents, patience: Duration, deadline: Duration,
    spoolPatience: Duration = .seconds(5), pace: RetryPace, metrics: PublicationMetrics, logger: Logger
  ) async throws(SpoolError) {
    (self.log, self.spool, self.accepted) = (log, spool, accepted)
    (self.patience, self.spoolPatience, self.deadline) = (patience, spoolPatience, max(patience, deadline))
    lanes = AccountLanes(pace, patience: patience) { .random(in: 0.5...1) }
    (self.metrics, self.logger) = (metrics, logger)
    for held in try await spool.heldRecords() {
      lanes.restore(held.sequence, in: held.lane)
      if let mark = held.mark { accepted.insert(mark, acceptedAt: held.since) }
    }
    spool.whenSetAside = { [weak self] in self?.lanes.forgetHeld() }
    alarm.onPass { [weak self] in self?.passTime() }
  }

  /// Accepts a record, once.
  ///
  /// Throws where neither the log nor the spool takes it. Cancelling the task does not cut it short.
  ///
  /// - Parameters:
  ///   - mark: What it is known by; nil for what may stand there any number of times and in any order. That waits for none
  ///     of its own where the spool takes nothing.
  ///   - other: What it is known by as well, if it was accepted in another form; nil where there is none.
  package func publish(
    _ record: EventRecord, as mark: AcceptedEvents.Mark?, or other: AcceptedEvents.Mark? = nil
  ) async throws(EventLogError) -> Acceptance {
    try await withCheckedContinuation { waiter in
      let submission = Submission(record, mark: mark, other: other, waiter: waiter)
      unanswered += 1
      pending += 1
      arrive(submission)
    }.get()
  }

  private func arrive(_ submission: Submission) {
    if isKnown(submission.mark) || isKnown(submission.other) {
      metrics.repeated.increment()
      return answer(submission, .success(.repeated))
    }
    // What has no order waits for none of its own that a disk holds up.
    if submission.mark == nil, lanes.isGivenUp(submission.lane) { submission.lane = LaneID() }
    // Where the spool takes nothing, only what the log is given can show that it is well again.
    let logIsTrusted = !isLogSuspect || spool.isHanging
    let action = lanes.arrive(submission, in: submission.lane, logIsTrusted: logIsTrusted)
    if action == nil { expire(submission, at: Loop.now + max(deadline, spoolPatience)) }
    perform(action, in: submission.lane)
  }

  private func isKnown(_ mark: AcceptedEvents.Mark?) -> Bool {
    guard let mark else { return false }
    return accepted.contains(mark)
  }

  // MARK: What a lane says is to be done

  /// Does what is to be done of a lane, and lets in who comes next.
  func perform(_ action: AccountLanes<Submission>.Action?, in lane: LaneID) {
    switch action {
    case .append(let submission): append(submission)
    case .store(let submission): store(submission)
    case .answer(let submission, let answer): settle(submission, answer)
    case .remove(let sequence): remove(sequence, of: lane)
    case nil: break
    }
    free.append(lane)
    letIn()
  }

  /// Lets in who comes next. Log and spool may say at once what became of it, which frees the place again: that is for the
  /// outermost call, or the stack would grow with those who wait.
  private func letIn() {
    if isLettingIn { return }
    isLettingIn = true
    while let lane = free.popFirst() {
      while let next = lanes.step(lane, { $0.next() }) { arrive(next) }
    }
    isLettingIn = false
  }

  private func append(_ submission: Submission) {
    submission.sent = Loop.now
    pending += 1
    // A log that is being closed takes nothing more, and says nothing about the log.
    if isClosing { return finish(submission, .failure(.closing)) }
    while let first = patient.first, first.report != nil { _ = patient.popFirst() }
    patient.append(submission)
    if alarm.due == .distantFuture { alarm.set(submission.sent + patience) }
    log.append(submission.record) { [self] report in
      note(report)
      finish(submission, report)
    }
  }

  /// Takes what the log says of a new record.
  private func finish(_ submission: Submission, _ report: Result<EventLogPosition, EventLogError>) {
    let lane = submission.lane
    if case .success = report { remember(submission) }
    submission.report = report
    switch report {
    case .success: perform(lanes.step(lane) { $0.acknowledged(submission) }, in: lane)
    case .failure(let error): fail(submission, of: lane, submission.sequence, error)
    }
    settled()
  }

  /// Remembers that a record is on the log or in the spool now, whatever whoever brought it was told: it is not to come
  /// again behind a later one of its account.
  private func remember(_ submission: Submission) {
    if let mark = submission.mark, !submission.isKept { accepted.insert(mark) }
  }

  /// Takes that the log did not take a record: a new one, or with nil one that the drain brought.
  func fail(_ submission: Submission?, of lane: LaneID, _ sequence: Int64?, _ error: EventLogError) {
    let isRefused = isHopeless(error, submission)
    if isRefused, let sequence { note(error, of: sequence) }
    perform(lanes.failed(submission, in: lane, isRefused: isRefused, at: Loop.now), in: lane)
    wakeDrain()
  }

  private func store(_ submission: Submission) {
    pending += 1
    let now = Loop.now
    expire(submission, at: max(min(submission.sent, now) + deadline, now + spoolPatience))
    submission.storing = now
    spool.insert(submission.record) { [self] result in
      submission.storing = nil
      let lane = submission.lane
      switch result {
      case .success(let sequence):
        metrics.spooled.increment()
        remember(submission)
        submission.sequence = sequence
        perform(lanes.stored(submission, as: sequence, in: lane, at: Loop.now), in: lane)
        wakeDrain()
      case .failure(let refusal):
        submission.refusal = refusal
        let (isLate, isOrdered) = (Loop.now >= submission.sent + deadline, submission.mark != nil)
        perform(lanes.step(lane) { $0.notStored(submission, isLate: isLate, isOrdered: isOrdered) }, in: lane)
        // Only the log may still take it.
        expire(submission, at: submission.sent + deadline)
      }
      settled()
    }
  }

  private func remove(_ sequence: Int64, of lane: LaneID) {
    spool.remove(sequence) { [self] in
      metrics.drained.increment()
      if refused.remove(sequence) != nil { metrics.refused.set(Double(refused.count)) }
      lanes.removed(from: lane)
      wakeDrain()
    }
  }

  private func settle(_ submission: Submission, _ answer: AccountLane<Submission>.Answer) {
    switch (answer, submission.report) {
    case (.published, .success(let position)): self.answer(submission, .success(.published(position)))
    case (.published, _), (.spooled, _): self.answer(submission, .success(.spooled))
    case (.lost, _): self.answer(submission, .failure(submission.loss))
    }
  }

  private func answer(_ submission: Submission, _ answer: Result<Acceptance, EventLogError>) {
    unanswered -= 1
    submission.answer(answer)
    settled()
  }

  private func settled() {
    pending -= 1
    guard pending == 0 else { return }
    for continuation in idle { continuation.resume() }
    idle = []
  }

  // MARK: What is known of the log

  /// Learns from what the log says of a new record whether it can be relied on.
  func note(_ report: Result<EventLogPosition, EventLogError>) {
    switch report {
    case .success:
      lastAcknowledged = Loop.now
      guard isLogSuspect else { return }
      isLogSuspect = false
      metrics.isLogSuspect.set(0)
      logger.info("the log acknowledges again", ["spool.records": .integer(spool.depth)])
      lanes.hasten()
      wakeDrain()
    // What it refuses says nothing of others.
    case .failure(let error): if error.outcome != .refused { suspect(error.detail) }
    }
  }

  /// Suspects the log, unless it acknowledged others meanwhile: what goes wrong with one account, partition or topic sends
  /// nobody else's records to the spool.
  private func suspect(_ cause: @autoclosure () -> String) {
    if isLogSuspect {
      lastFailed = Loop.now
      return
    }
    if let lastAcknowledged, Loop.now - lastAcknowledged < patience { return }
    (isLogSuspect, lastFailed) = (true, Loop.now)
    metrics.isLogSuspect.set(1)
    logger.warning("the log fails or is late: the spool takes over", ["cause": .string(cause())])
  }

  /// Whether the log never takes a record. A new one that is refused, maybe for what else was in its batch, is soon tried
  /// alone; nil stands for one that was, and that quarantine did not take either.
  private func isHopeless(_ error: EventLogError, _ submission: Submission?) -> Bool {
    submission == nil && error.outcome == .refused
  }

  /// Says once of each record that the log refuses it.
  private func note(_ error: EventLogError, of sequence: Int64) {
    guard refused.insert(sequence).inserted else { return }
    metrics.refused.set(Double(refused.count))
    logger.error(
      "the log refuses a record, which stays in the spool",
      ["spool.sequence": .integer(sequence), "reason": .string(error.reason), "detail": .string(error.detail)])
  }

  private func passTime() {
    while let submission = patient.first, submission.sent + patience <= Loop.now {
      _ = patient.popFirst()
      guard submission.report == nil else { continue }
      suspect("no acknowledgement within \(patience)")
      perform(lanes.step(submission.lane) { $0.runOutOfPatience(with: submission) }, in: submission.lane)
    }
    if let first = patient.first { alarm.set(first.sent + patience) }
  }

  /// Has whoever waits be told at that time that the record is lost, where nothing is known of it by then.
  private func expire(_ submission: Submission, at end: MonotonicTime) {
    submission.expire(at: end) { [weak self, weak submission] in
      guard let self, let submission else { return }
      if let since = submission.storing {
        if since + spoolPatience <= Loop.now { spool.hang() }
        submission.refusal = spool.refusal
      }
      perform(lanes.step(submission.lane) { $0.runOutOfTime(for: submission) }, in: submission.lane)
    }
  }

  // MARK: The end

  /// Ends in good order, by `end` at the latest as far as the log is concerned. What the log has not acknowledged by then
  /// stays in the spool, for the next run. Call it when nothing new is published any more.
  package func close(by end: MonotonicTime) async {
    isClosing = true
    wakeDrain()
    // Whoever still waits at the end waits in vain for the log. What only the drain or the spool waits for has been
    // answered, and gets the time that any record gets.
    await log.close(within: unanswered > 0 ? max(end - .now, .zero) : min(patience, max(end - .now, .zero)))
    await withCheckedContinuation { continuation in
      if pending == 0 { continuation.resume() } else { idle.append(continuation) }
    }
    for alarm in [alarm, drainAlarm] { alarm.invalidate() }
    await spool.close()  // what is on the log leaves it before
    await accepted.close()
  }
}

extension EventPublisher {
  /// How long a failure of the log counts where the cluster answers: only what comes afterwards shows that it is well again.
  private static let memory = Duration.seconds(30)

  /// Asks whether records can be accepted now.
  func check() async -> Readiness.State {
    if let failure = spool.failureToOpen { return .notReady(cause: "\(failure)") }
    let fault: String
    do throws(EventLogError) {
      try await log.check()
      // A cluster may say all is well and take nothing, as where copies are missing, a right is, or a broker is out of reach.
      guard isLogSuspect, let lastFailed, Loop.now - lastFailed < Self.memory, !spool.takesRecords else {
        return .ready
      }
      fault = "the log acknowledges nothing"
    } catch {
      if spool.takesRecords { return .replaced(cause: "the spool takes over: \(error.detail)") }
      fault = error.detail
    }
    return .notReady(cause: "\(fault); \(spool.refusal.map { "\($0)" } ?? "the spool is full")")
  }
}
