package import EventLoop

/// Stands in front of something outside, and keeps everybody from it while it fails: after so many failures in a row
/// nobody asks for a while, then one tries.
///
/// While it is open, `run` throws `ConsumerFailure.waiting`: events wait in their lanes, and no attempt is counted.
@Loop
package final class CircuitBreaker {
  private let name: String
  private let limit: Int
  private let pace: RetryPace
  private let clock: @Loop () -> MonotonicTime
  private let random: @Sendable () -> Double
  private var failures = 0
  /// Until when nobody asks; nil while everybody may.
  private var opensAt: MonotonicTime?
  /// How many times that was set.
  private var pauses: UInt64 = 0
  private var isProbing = false

  /// A closed one.
  ///
  /// - Parameters:
  ///   - name: The cause that those who wait are told, such as `apple-unavailable`.
  ///   - limit: How many failures in a row open it.
  ///   - pace: How long it stays open, longer with each attempt that fails; at least half of what the pace says.
  package init(
    _ name: String, opensAfter limit: Int, pace: RetryPace, clock: @escaping @Loop () -> MonotonicTime,
    random: @escaping @Sendable () -> Double
  ) {
    precondition(limit > 0, "a breaker that opens before anything fails")
    (self.name, self.limit, self.pace) = (name, limit, pace)
    (self.clock, self.random) = (clock, random)
  }

  /// Whether one tries at most, because of what failed.
  package var isOpen: Bool { opensAt != nil }

  /// Calls `body`, unless it failed too often of late, or has asked not to be asked. What is permanent about a single event
  /// is no failure of what is asked; every other error is.
  package func run<Value: Sendable>(_ body: @Loop () async throws -> Value) async throws -> Value {
    if let opensAt {
      let left = opensAt - clock()
      guard left <= .zero, !isProbing else { throw ConsumerFailure.waiting(name, for: max(left, pace.first)) }
      isProbing = true
    }
    let (before, isProbe) = (pauses, isOpen)
    defer { if isProbe { isProbing = false } }
    do {
      let value = try await body()
      succeed(since: before)
      return value
    } catch {
      switch (error as? ConsumerFailure)?.consequence {
      case nil, .transient: fail(asked: (error as? ConsumerFailure)?.retryAfter ?? .zero, since: before)
      case .permanent: succeed(since: before)
      case .waiting: break
      }
      throw error
    }
  }

  /// Where it was opened since the call began, the answer is older than what opened it, and says nothing of now.
  private func succeed(since before: UInt64) {
    if pauses == before { (failures, opensAt) = (0, nil) }
  }

  /// Failures of calls that were under way when it was opened count with what opened it; but each may ask for a longer pause.
  private func fail(asked: Duration, since before: UInt64) {
    guard pauses == before else {
      if let end = opensAt, asked > .zero { pause(until: max(end, clock() + asked)) }
      return
    }
    failures += 1
    if failures >= limit || asked > .zero {
      pause(until: clock() + max(asked, pace.pause(after: failures - limit + 1, random: 0.5 + random() / 2)))
    }
  }

  private func pause(until end: MonotonicTime) {
    opensAt = end
    pauses += 1
  }
}
