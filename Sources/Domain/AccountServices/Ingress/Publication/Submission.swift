import AccountEvents
import EventLoop

/// A record that was given to the publisher, with what became of it so far and whoever waits for it.
final class Submission: Equatable {
  let record: EventRecord
  var lane: LaneID
  let mark: AcceptedEvents.Mark?
  let other: AcceptedEvents.Mark?
  /// When the log was given it.
  var sent = MonotonicTime.distantFuture
  /// Whether it is on the log or in the spool.
  var isKept: Bool {
    if case .success = report { return true }
    return sequence != nil
  }
  /// By when whoever waits is told at the latest; nil where nobody has said so, and once they are told.
  private var deadline: Deadline?
  /// What the log said.
  var report: Result<EventLogPosition, EventLogError>?
  /// Since when it is on its way into the spool; nil where it is not.
  var storing: MonotonicTime?
  /// Why the spool did not take it.
  var refusal: SpoolError?
  /// Its number in the spool.
  var sequence: Int64?
  /// Whoever waits, until they are told.
  private var waiter: CheckedContinuation<Result<EventPublisher.Acceptance, EventLogError>, Never>?

  init(
    _ record: EventRecord, mark: AcceptedEvents.Mark?, other: AcceptedEvents.Mark?,
    waiter: CheckedContinuation<Result<EventPublisher.Acceptance, EventLogError>, Never>
  ) {
    (self.record, self.mark, self.other, self.waiter) = (record, mark, other, waiter)
    lane = LaneID(of: record)
  }

  static func == (left: Submission, right: Submission) -> Bool { left === right }

  /// Has `action` called at that time, or at an earlier one that was said before, where nobody is told by then.
  @Loop
  func expire(at end: MonotonicTime, _ action: @escaping @Loop () -> Void) {
    if waiter == nil { return }
    let deadline = deadline ?? Deadline()
    if self.deadline == nil { deadline.onPass(action) }
    self.deadline = deadline
    deadline.set(min(deadline.due, end))
  }

  /// Tells whoever waits, once.
  @Loop
  func answer(_ answer: Result<EventPublisher.Acceptance, EventLogError>) {
    deadline?.invalidate()
    deadline = nil
    waiter?.resume(returning: answer)
    waiter = nil
  }

  /// Why neither the log nor the spool has it.
  var loss: EventLogError {
    let log: EventLogError? =
      switch report {
      case .failure(let error): error
      case .success: nil
      case nil: sent == .distantFuture ? nil : .noAnswer
      }
    guard let refusal else { return log ?? .noAnswer }
    return log.map { EventLogError($0, and: refusal) } ?? EventLogError(refusal)
  }
}

extension EventLogError {
  /// The publisher ends: the spool takes what comes.
  static let closing = EventLogError(.unavailable, reason: "closed", detail: "the ingress ends")
  fileprivate static let noAnswer = EventLogError(
    .uncertain, reason: "timedOut", detail: "no acknowledgement within the deadline")
}
