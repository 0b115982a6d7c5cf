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
/// processes accept of one account stands on the log in no order.
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
  let patience: Duration
  private let deadline: Duration
  private let accepted: AcceptedEvents
  var lanes = AccountLanes()
  private var attempts = Attempts()
  private var overdue = Attempts()
  private let alarm = Deadline()
  private var publishing = 0
  /// Records that the spool is given while their way to the log is not over.
  private var settling = 0
  private var idle: [CheckedContinuation<Void, Never>] = []
  private(set) var isClosing = false
  /// Whether the log failed, or was late, and has acknowledged nothing since.
  private(set) var isLogSuspect = false
  /// What the log acknowledged after the spool had it too: the drain has only to remove it.
  var deliveredLate: Set<Int64> = []
  /// The accounts whose records the log did not take when the drain last tried.
  var failing: Set<AccountLanes.Name> = []
  /// What the spool holds and the log refuses: each is logged once, and tried again and again.
  var refused: Set<Int64> = []
  /// How many records the drain may have on their way.
  let window = DrainWindow()
  /// The drain, while there is nothing to do.
  var drainer: CheckedContinuation<Void, Never>?

  /// A publisher that has what the last run left in the spool.
  ///
  /// - Parameters:
  ///   - accepted: What was accepted before, so that it is not accepted twice.
  ///   - patience: How long the log may take before the spool has the record too.
  ///   - deadline: How long whoever publishes waits where the spool does not take it either.
  package init(
    log: any EventLog, spool: Spool, accepted: AcceptedEvents, patience: Duration, deadline: Duration,
    metrics: PublicationMetrics, logger: Logger
  ) async throws(SpoolError) {
    (self.log, self.spool, self.accepted) = (log, spool, accepted)
    (self.patience, self.deadline) = (patience, max(patience, deadline))
    (self.metrics, self.logger) = (metrics, logger)
    for held in try await spool.heldKeys() { lanes.hold(held.count, of: AccountLanes.name(of: held.key)) }
    spool.whenSetAside = { [weak self] held in
      for held in held { self?.lanes.hold(-held.count, of: AccountLanes.name(of: held.key)) }
    }
    alarm.onPass { [weak self] in self?.expireAttempts() }
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
    publishing += 1
    defer { endPublishing() }
    let lane = AccountLanes.name(of: record)
    if !lanes.enter(lane) { await withCheckedContinuation { lanes.wait(for: lane, $0) } }
    defer { lanes.leave(lane) }
    if [mark, other].contains(where: { $0.map(accepted.contains) ?? false }) {
      metrics.repeated.increment()
      return .repeated
    }
    let acceptance = try await accept(record, lane, inOrder: mark != nil)
    if let mark { accepted.insert(mark) }
    return acceptance
  }

  private func accept(
    _ record: EventRecord, _ lane: AccountLanes.Name, inOrder: Bool
  ) async throws(EventLogError) -> Acceptance {
    let mustQueue = lanes.isHeld(lane)
    if !mustQueue, !isLogSuspect { return try await publish(record, lane) }
    do throws(SpoolError) {
      try await hold(record, lane)
      return .spooled
    } catch {
      if mustQueue, inOrder { throw EventLogError(error) }
      // No room: then the log has to take it, or nobody does.
      let attempt = attempt(record)
      attempt.noteHeld(.failure(error))
      return try await settle(attempt)
    }
  }

  /// The way of nearly all records: to the log, and to the spool where that takes too long.
  private func publish(_ record: EventRecord, _ lane: AccountLanes.Name) async throws(EventLogError) -> Acceptance {
    let attempt = attempt(record)
    if case .success(let position) = await attempt.wait() { return .published(position) }
    let mayBegin = lanes.begin(lane)
    precondition(mayBegin, "the drain takes nothing of an account that nothing is held of")
    settling += 1
    Task(executorPreference: Loop.executor) { await self.hold(record, lane, during: attempt) }
    return try await settle(attempt)
  }

  private func settle(_ attempt: Attempt) async throws(EventLogError) -> Acceptance {
    switch await attempt.settle() {
    case .published(let position): return .published(position)
    case .held: return .spooled
    case .lost(let log, let spool): throw EventLogError(log, and: spool)
    }
  }

  /// Gives a record to the spool whose way to the log takes too long, or has failed; then waits for the end of that way.
  private func hold(_ record: EventRecord, _ lane: AccountLanes.Name, during attempt: Attempt) async {
    do throws(SpoolError) {
      let sequence = try await hold(record, lane)
      attempt.noteHeld(.success(()))
      if case .success = await attempt.waitForReport() { deliveredLate.insert(sequence) }
    } catch {
      // What the log still has of it comes before whatever it is given next.
      attempt.noteHeld(.failure(error))
    }
    lanes.end(lane)
    wakeDrain()
    settling -= 1
    resumeIdle()
  }

  /// Gives the record to the log.
  private func attempt(_ record: EventRecord) -> Attempt {
    let attempt = Attempt(until: Loop.now + patience, end: Loop.now + deadline)
    // A log that is being closed takes nothing more, and says nothing about the log.
    if isClosing {
      attempt.note(.failure(.closing))
      return attempt
    }
    attempts.append(attempt)
    if alarm.due == .distantFuture { alarm.set(attempt.due) }
    log.append(record) { [self] report in
      note(report)
      attempt.note(report)
    }
    return attempt
  }

  /// Gives the record to the spool, and says what it is known by there.
  @discardableResult
  private func hold(_ record: EventRecord, _ lane: AccountLanes.Name) async throws(SpoolError) -> Int64 {
    lanes.hold(1, of: lane)
    do throws(SpoolError) {
      let sequence = try await spool.insert(record)
      metrics.spooled.increment()
      wakeDrain()
      return sequence
    } catch {
      lanes.hold(-1, of: lane)
      throw error
    }
  }

  /// Learns from what the log says whether it can be relied on.
  func note(_ report: Result<EventLogPosition, EventLogError>) {
    switch report {
    case .success: noteSuspicion(nil)
    case .failure(let error): noteSuspicion(error.detail)
    }
  }

  private func noteSuspicion(_ cause: String?) {
    guard isLogSuspect != (cause != nil) else { return }
    isLogSuspect = cause != nil
    metrics.isLogSuspect.set(isLogSuspect ? 1 : 0)
    if let cause {
      logger.warning("the log fails or is late: the spool takes over", ["cause": .string(cause)])
    } else {
      logger.info("the log acknowledges again", ["spool.records": .integer(spool.depth)])
    }
  }

  private func expireAttempts() {
    let late = attempts.takeDue(by: Loop.now)
    if !late.isEmpty { noteSuspicion("no acknowledgement within \(patience)") }
    for attempt in late where attempt.expire() { overdue.append(attempt) }
    for attempt in overdue.takeDue(by: Loop.now) { _ = attempt.expire() }
    if let next = [attempts.due, overdue.due].compactMap(\.self).min() { alarm.set(next) }
  }

  private func endPublishing() {
    publishing -= 1
    resumeIdle()
  }

  private func resumeIdle() {
    guard publishing == 0, settling == 0 else { return }
    for waiting in idle { waiting.resume() }
    idle = []
  }

  /// Ends in good order, by `end` at the latest as far as the log is concerned. What the log has not acknowledged by then
  /// stays in the spool, for the next run. Call it when nothing new is published any more.
  package func close(by end: MonotonicTime) async {
    isClosing = true
    wakeDrain()
    // Whoever still waits at the end waits in vain for the log. What only the drain or the spool waits for has been
    // answered, and gets the time that any record gets.
    await log.close(within: publishing > 0 ? max(end - .now, .zero) : min(patience, max(end - .now, .zero)))
    await withCheckedContinuation { continuation in
      if publishing == 0, settling == 0 { continuation.resume() } else { idle.append(continuation) }
    }
    alarm.invalidate()
    await withDiscardingTaskGroup { [spool] group in
      for sequence in deliveredLate {
        group.addTask(executorPreference: Loop.executor) { await spool.remove(sequence) }
      }
      await Loop.nextTurn()
      await spool.close()
    }
    await accepted.close()
  }
}

extension EventPublisher {
  /// Asks whether records can be accepted now.
  func check() async -> Readiness.State {
    if let failure = spool.failureToOpen { return .notReady(cause: "\(failure)") }
    do throws(EventLogError) {
      try await log.check()
      return .ready
    } catch {
      if spool.takesRecords { return .replaced(cause: "the spool takes over: \(error.detail)") }
      return .notReady(cause: "\(error.detail); \(spool.refusal.map { "\($0)" } ?? "the spool is full")")
    }
  }
}
