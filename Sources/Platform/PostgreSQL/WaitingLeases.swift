import EventLoop

/// Somebody who waits for a connection of the pool, and is answered once.
@Loop
final class WaitingLease {
  private let deadline = Deadline()
  private var waiting: CheckedContinuation<Result<Connection, PostgreSQLError>, Never>?
  private var early: Result<Connection, PostgreSQLError>?
  /// Why the last attempt to connect failed while it waited.
  var failure: PostgreSQLError?
  /// Whether it still waits.
  private(set) var isWaiting = true

  func wait(until end: MonotonicTime, _ continuation: CheckedContinuation<Result<Connection, PostgreSQLError>, Never>) {
    // Its task may have been cancelled before this.
    if let early { return continuation.resume(returning: early) }
    waiting = continuation
    deadline.onPass { [weak self] in
      self?.answer(
        .failure(self?.failure ?? PostgreSQLError(.exhausted, detail: "no connection of the pool became free in time")))
    }
    deadline.set(end)
  }

  func answer(_ result: Result<Connection, PostgreSQLError>) {
    guard isWaiting else { return }
    isWaiting = false
    deadline.invalidate()
    if waiting == nil { early = result }
    waiting?.resume(returning: result)
    waiting = nil
  }
}

/// Those who wait, in the order in which they came.
@Loop
struct WaitingLeases {
  private var leases: [WaitingLease] = []

  var count: Int {
    mutating get {
      leases.removeAll { !$0.isWaiting }
      return leases.count
    }
  }

  mutating func append(_ lease: WaitingLease) { leases.append(lease) }

  mutating func popFirst() -> WaitingLease? {
    guard let index = leases.firstIndex(where: { $0.isWaiting }) else {
      leases = []
      return nil
    }
    let first = leases[index]
    leases.removeFirst(index + 1)
    return first
  }

  mutating func removeAll() -> [WaitingLease] {
    defer { leases = [] }
    return leases
  }

  func note(_ failure: PostgreSQLError) { for lease in leases { lease.failure = failure } }
}
