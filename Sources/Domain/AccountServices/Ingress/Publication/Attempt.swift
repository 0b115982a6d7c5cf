import EventLoop

/// A record on its way to the log, and maybe into the spool too, and whoever waits for it.
@Loop
final class Attempt {
  typealias Report = Result<EventLogPosition, EventLogError>

  /// What whoever waits may be told.
  enum Settlement {
    /// The log has it.
    case published(EventLogPosition)
    /// The spool has it.
    case held
    /// Neither has it.
    case lost(EventLogError, SpoolError)
  }

  /// When the log has had its time, and the spool takes over; once it has, when whoever waits is told that neither did.
  private(set) var due: MonotonicTime
  private let end: MonotonicTime
  /// What the log said; nil while it has said nothing.
  private(set) var report: Report?
  private var held: Result<Void, SpoolError>?
  private var isExpired = false
  private var isOver = false
  private var changes = 0
  private var waiter: CheckedContinuation<Void, Never>?
  private var whenReported: (@Loop (Report) -> Void)?

  init(until due: MonotonicTime, end: MonotonicTime) { (self.due, self.end) = (due, end) }

  /// What the log says, or nil where its time is over before.
  func wait() async -> Report? {
    while report == nil, !isExpired { await change(since: changes) }
    return report
  }

  /// What is known first: that the log or the spool has the record, or that neither does.
  func settle() async -> Settlement {
    while true {
      switch (report, held) {
      case (.success(let position), _): return .published(position)
      case (_, .success): return .held
      case (.failure(let log), .failure(let spool)): return .lost(log, spool)
      case (nil, .failure(let spool)) where isOver: return .lost(.noAnswer, spool)
      default: await change(since: changes)
      }
    }
  }

  /// What the log says, however long that takes: it has a deadline of its own. For one only.
  func waitForReport() async -> Report {
    await withCheckedContinuation { continuation in
      if let report { return continuation.resume(returning: report) }
      whenReported = { continuation.resume(returning: $0) }
    }
  }

  /// Takes what the log says.
  func note(_ report: Report) {
    self.report = report
    whenReported?(report)
    whenReported = nil
    changed()
  }

  /// Takes what the spool says.
  func noteHeld(_ result: Result<Void, SpoolError>) {
    held = result
    changed()
  }

  /// Lets go whoever waits for the log: its time is over. The second time, whoever waits for anything. Returns whether
  /// there is a second time to come.
  func expire() -> Bool {
    isOver = isExpired
    isExpired = true
    due = end
    changed()
    return !isOver
  }

  private func change(since seen: Int) async {
    await withCheckedContinuation { continuation in
      // A task that does not prefer the loop's executor gives way before this.
      if changes != seen { return continuation.resume() }
      waiter = continuation
    }
  }

  private func changed() {
    changes += 1
    waiter?.resume()
    waiter = nil
  }
}

extension EventLogError {
  /// The publisher ends: the spool takes what comes.
  static let closing = EventLogError(.unavailable, reason: "closed", detail: "the ingress ends")
  fileprivate static let noAnswer = EventLogError(
    .uncertain, reason: "timedOut", detail: "no acknowledgement within the deadline")
}

/// The attempts under way, oldest first. All have the same time, so those that are due come first.
@Loop
struct Attempts {
  private var attempts: [Attempt] = []
  private var head = 0

  nonisolated init() {}

  /// When the oldest that waits is due; nil where none does.
  var due: MonotonicTime? { head < attempts.count ? attempts[head].due : nil }

  mutating func append(_ attempt: Attempt) {
    while head < attempts.count, attempts[head].report != nil { head += 1 }
    compact()
    attempts.append(attempt)
  }

  /// Takes out what was reported and stands first, and whatever is due.
  mutating func takeDue(by time: MonotonicTime) -> [Attempt] {
    var due: [Attempt] = []
    while head < attempts.count, attempts[head].report != nil || attempts[head].due <= time {
      if attempts[head].report == nil { due.append(attempts[head]) }
      head += 1
    }
    compact()
    return due
  }

  /// Gives back what is used up, when it is half: moving the rest down costs each attempt one move at most.
  private mutating func compact() {
    guard head > 0, head * 2 >= attempts.count else { return }
    attempts.removeFirst(head)
    head = 0
  }
}
