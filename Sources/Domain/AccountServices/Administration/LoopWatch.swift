package import EventLoop
package import Telemetry

/// Measures the turns of the event loop, and says when one took so long that others felt it: everything in a process waits
/// while one thing is being done.
@Loop
package final class LoopWatch {
  /// A turn that takes longer is logged.
  package static let threshold = Duration.milliseconds(100)
  /// For so long after a line there is no other.
  private static let pause = Duration.seconds(10)

  private let turns: Histogram
  private let logger: Logger
  private var observer: LoopTurnObserver?
  private var silentUntil: MonotonicTime?
  private var notLogged = 0

  /// Watches from here on.
  package init(_ registry: MetricsRegistry, _ logger: Logger) {
    self.logger = logger
    turns = registry.histogram(
      "siwa_loop_turn_seconds",
      "How long each turn of the event loop took, in which nothing else is served. Alarm on any beyond 0.1.",
      buckets: [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10])
    // Weak: whoever releases the watch on another thread does so before the observer has left the loop.
    observer = LoopTurnObserver { [weak self] turn in self?.note(turn, at: Loop.now) }
  }

  /// Counts a turn that ended now.
  package func note(_ turn: Duration, at now: MonotonicTime) {
    turns.observe(Double(turn.wholeNanoseconds) / 1e9)
    guard turn > Self.threshold else { return }
    if let silentUntil, now < silentUntil {
      notLogged += 1
      return
    }
    logger.warning(
      "the event loop stood still",
      ["loop.milliseconds": .integer(Int(turn.wholeNanoseconds / 1_000_000)), "notLogged": .integer(notLogged)])
    (silentUntil, notLogged) = (now + Self.pause, 0)
  }
}
