import AccountServices
import EventLoop
import Telemetry
import TestSupport
import Testing

/// What operators learn of the loop.
@Loop @Suite struct LoopWatchTests {
  private let lines = CapturedLog()
  private let registry = MetricsRegistry()

  private func warnings() -> [String] { lines.lines.filter { $0.contains("the event loop stood still") } }

  @Test func aTurnThatOthersFeelIsLoggedAndNotEachOfMany() {
    let watch = LoopWatch(registry, lines.logger())
    // Other tests keep the loop busy too, but it does not turn while this one runs.
    let start = MonotonicTime.now + .seconds(3600)
    watch.note(.milliseconds(100), at: start)
    #expect(warnings() == [])
    watch.note(.milliseconds(250), at: start)
    for _ in 0..<5 { watch.note(.seconds(1), at: start + .seconds(9)) }
    #expect(warnings().count == 1)
    #expect(warnings().first?.contains(#""loop.milliseconds":250"#) == true)
    watch.note(.seconds(2), at: start + .seconds(10))
    #expect(warnings().count == 2)
    #expect(warnings().last?.contains(#""notLogged":5"#) == true)
    let metrics = String(decoding: registry.render(), as: UTF8.self)
    #expect(metrics.contains("siwa_loop_turn_seconds_bucket{le=\"0.1\"} 1\n"), "\(metrics)")
    #expect(metrics.contains("siwa_loop_turn_seconds_count 8\n"), "\(metrics)")
  }

  @Test func theLoopsOwnTurnsAreCounted() async throws {
    let watch = LoopWatch(registry, lines.logger())
    let start = MonotonicTime.now
    while .now - start < LoopWatch.threshold + .milliseconds(1) {}
    await turn()
    #expect(warnings().count >= 1, "other tests may make a turn as long")
    withExtendedLifetime(watch) {}
  }
}
