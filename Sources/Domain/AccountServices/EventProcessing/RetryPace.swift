/// How long an event waits before it is tried again: longer with each attempt, and never at the same time as many others.
package struct RetryPace: Sendable, Equatable {
  /// The longest wait after the first attempt; it doubles with each further one.
  package var first: Duration
  /// Where that doubling ends.
  package var longest: Duration

  /// A pace; both times are positive.
  package init(first: Duration, longest: Duration) {
    precondition(min(first, longest) > .zero, "attempts without a pause")
    (self.first, self.longest) = (first, longest)
  }

  /// The wait after so many attempts, anywhere between nothing and the longest: `random` lies between 0 and 1.
  package func pause(after attempts: Int, random: Double) -> Duration {
    var longest = first
    for _ in 1..<max(attempts, 1) where longest < self.longest { longest += longest }
    return min(longest, self.longest) * random
  }
}
