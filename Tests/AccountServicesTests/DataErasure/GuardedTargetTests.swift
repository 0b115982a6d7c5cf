import AccountStore
import ConsumerSupport
import EventLoop
import Telemetry
import TestSupport
import Testing

@testable import AccountServices

/// What operators are told of a target that does not answer.
@Loop @Suite struct GuardedTargetTests {
  @Test func aTargetThatAsksForAPauseIsPausedWhateverIsAnsweredToOlderCalls() async throws {
    let (alarm, registry, captured, end) = (ManualAlarm(), MetricsRegistry(), CapturedLog(), Signal())
    let target = GuardedTarget(
      "shop", ScriptedTarget(holding: 0), share: 64, clock: { alarm.now }, random: { 1 }, registry: registry,
      logger: captured.logger())
    let older = Task(executorPreference: Loop.executor) { try await target.run { await end.wait() } }
    await turn()
    await #expect(throws: ErasureFailure.self) {
      try await target.run { () async throws -> Void in
        throw ErasureFailure(.unavailable, "busy", retryAfter: .seconds(3600))
      }
    }
    end.fire()
    try await older.value
    func isPaused() -> Bool {
      String(decoding: registry.render(), as: UTF8.self).contains("siwa_erasure_target_paused{target=\"shop\"} 1")
    }
    #expect(isPaused())
    alarm.advance(by: .seconds(3600))
    try await target.run {}
    #expect(!isPaused())
    #expect(captured.lines.count { $0.contains("answers again") } == 1)
  }
}
