package import AccountEvents
package import EventLoop

/// When keys are fetched, and what is known of those that were looked for: a value that is told what happened.
package struct FetchPlan {
  /// What `step` says.
  package enum Step: Equatable {
    /// Wait for a fetch: one may begin now, or is on its way.
    case wait
    /// The last fetch was made for this very key, and came back without it.
    case absent
    /// No fetch may begin before then.
    case notBefore(MonotonicTime)
  }

  /// How many keys that Apple does not have are remembered.
  package static let maximumMissing = 64

  /// When the next fetch is due though nobody asks.
  package private(set) var due: MonotonicTime
  /// From when on an unknown key may cause one.
  package private(set) var allowed: MonotonicTime
  /// Whether a fetch is on its way.
  package private(set) var isFetching = false
  private let pace: FetchPace
  private var failures = 0
  private var sought: Set<KeyID> = []
  private var missing: Set<KeyID> = []

  /// A plan whose first fetch is due at once.
  package init(_ pace: FetchPace, at now: MonotonicTime) {
    self.pace = pace
    due = now
    allowed = now
  }

  /// What to do about a key that is not in the set.
  package func step(for id: KeyID, at now: MonotonicTime) -> Step {
    let mayBegin = !isFetching && now >= allowed
    if missing.contains(id), !mayBegin { return .absent }
    return mayBegin || isFetching ? .wait : .notBefore(allowed)
  }

  /// A fetch begins, for whoever asked until now.
  package mutating func began(for ids: some Sequence<KeyID>) {
    isFetching = true
    sought = []
    for id in ids where sought.count < Self.maximumMissing { sought.insert(id) }
  }

  /// The fetch brought a set. `jitter` lies between 0 and 1.
  package mutating func succeeded(with set: AppleKeySet, at now: MonotonicTime, jitter: Double) {
    missing = sought.filter { set[$0] == nil }
    failures = 0
    end(due: now + pace.refresh * (1 - jitter / 10), allowed: now + pace.pause)
  }

  /// The fetch brought nothing. `jitter` lies between 0 and 1.
  package mutating func failed(at now: MonotonicTime, jitter: Double) {
    missing = []
    var wait = pace.firstRetry
    for _ in 0..<failures where wait < pace.longestRetry { wait += wait }
    failures += 1
    let next = now + min(wait, pace.longestRetry) * (1 - jitter / 2)
    end(due: next, allowed: next)
  }

  private mutating func end(due: MonotonicTime, allowed: MonotonicTime) {
    isFetching = false
    sought = []
    self.due = due
    self.allowed = min(due, allowed)
  }
}
