import EventLoop

/// When Apple may be asked next: at the agreed rate at most, as slowly as the work of a day allows, and more slowly for a while
/// where Apple cannot keep up. A value: whoever asks says what time it is.
struct ApplePace: Sendable {
  /// So much of what a late timer or a slow disk has cost is caught up.
  private static let allowance = Duration.milliseconds(100)
  /// How long nobody is asked after failures: doubling with each.
  private static let pause = (first: Duration.seconds(1), longest: Duration.seconds(300))
  /// Failures that come together are one.
  private static let moment = Duration.seconds(1)
  /// How long all goes well before it gets faster again.
  private static let recovery = Duration.seconds(10)
  /// The least share of the rate.
  private static let leastShare = 1.0 / 64

  /// Requests a second.
  let agreed: Double
  /// The rate that spreads the work of a day; nil where that does not matter.
  private var spread: Double?
  /// How much of the rate Apple has lately been able to keep up with.
  private(set) var share = 1.0
  /// How many failures there were since all went well last, those that came together counted once.
  private(set) var failures = 0
  /// The moment of the last request. Before the first nobody waits: whoever is often started anew asks all the same.
  private var last: MonotonicTime?
  /// The next gap, measured by the rate: 1 on the average.
  private var jitter = 1.0
  private var pausedUntil: MonotonicTime
  private var changedAt: MonotonicTime

  /// A pace of `agreed` requests a second, from `start` on.
  init(_ agreed: Double, at start: MonotonicTime) {
    precondition(agreed > 0, "a rate is positive")
    (self.agreed, pausedUntil, changedAt) = (agreed, start, start)
  }

  /// How many requests a second there are now, but for pauses.
  var rate: Double { min(agreed, spread ?? agreed) * share }

  /// Has so many requests be made in that time; nil: as fast as is agreed.
  mutating func spread(_ requests: Int, over window: Duration?) {
    spread = window.map { max(Double(requests), 1) / (Double($0.wholeNanoseconds) / 1e9) }
  }

  /// The moment for the next request: not before `now`, but for what is caught up.
  func next(at now: MonotonicTime) -> MonotonicTime {
    let gap = Duration.nanoseconds(Int64(min(jitter / rate, 1e9) * 1e9))
    let earliest = max(pausedUntil, now + (.zero - Self.allowance))
    return last.map { max($0 + gap, earliest) } ?? earliest
  }

  /// A request takes that moment. Where requests are spread, gaps differ: `random` lies between 0 and 1.
  mutating func take(at now: MonotonicTime, random: Double) {
    last = next(at: now)
    jitter = spread == nil ? 1 : 0.5 + random
  }

  /// Apple has answered.
  mutating func succeeded(at now: MonotonicTime) {
    failures = 0
    guard share < 1, now - changedAt >= Self.recovery else { return }
    share = min(1, share * 1.25)
    changedAt = now
  }

  /// Apple has not, or asks for time. Says whether this failure counts, or came with others.
  @discardableResult
  mutating func failed(at now: MonotonicTime, retryAfter: Duration?) -> Bool {
    if let retryAfter { pausedUntil = max(pausedUntil, now + retryAfter) }
    guard failures == 0 || now - changedAt >= Self.moment else { return false }
    failures += 1
    share = max(share / 2, Self.leastShare)
    changedAt = now
    var pause = Self.pause.first
    for _ in 1..<failures where pause < Self.pause.longest { pause += pause }
    pausedUntil = max(pausedUntil, now + min(pause, Self.pause.longest))
    return true
  }
}
