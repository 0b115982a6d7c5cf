import EventLoop

/// A record on its way to the log, and whoever waits for it: until the log reports, or the time is over.
@Loop
final class Attempt {
  typealias Report = Result<EventLogPosition, EventLogError>

  /// When nobody waits any longer.
  let due: MonotonicTime
  /// What the log said; nil while it has said nothing.
  private(set) var report: Report?
  private var isExpired = false
  private var waiter: CheckedContinuation<Void, Never>?
  private var whenReported: (@Loop (Report) -> Void)?

  init(until due: MonotonicTime) { self.due = due }

  /// What the log says, or nil where the time is over before.
  func wait() async -> Report? {
    await withCheckedContinuation { continuation in
      // A task that does not prefer the loop's executor gives way before this.
      if report != nil || isExpired { return continuation.resume() }
      waiter = continuation
    }
    return report
  }

  /// What the log says, however long that takes: it has a deadline of its own.
  func waitForReport() async -> Report {
    await withCheckedContinuation { continuation in
      then { continuation.resume(returning: $0) }
    }
  }

  /// Calls `action` with what the log says, at once where it has said it. For one only.
  func then(_ action: @escaping @Loop (Report) -> Void) {
    if let report { action(report) } else { whenReported = action }
  }

  /// Takes what the log says.
  func note(_ report: Report) {
    self.report = report
    resume()
    whenReported?(report)
    whenReported = nil
  }

  /// Lets go whoever waits: the time is over.
  func expire() {
    isExpired = true
    resume()
  }

  private func resume() {
    waiter?.resume()
    waiter = nil
  }
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
