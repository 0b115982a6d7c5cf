import AccountServices
import EventLoop
import TestSupport
import Testing

/// What keeps everybody from something that fails.
@Loop @Suite struct CircuitBreakerTests {
  private let alarm = ManualAlarm()
  private var asked = 0

  private func breaker() -> CircuitBreaker {
    let alarm = alarm
    return CircuitBreaker(
      "apple-unavailable", opensAfter: 3, pace: RetryPace(first: .seconds(1), longest: .seconds(8)),
      clock: { alarm.now }, random: { 1 })
  }

  private func fail(_ breaker: CircuitBreaker, _ failure: ConsumerFailure = .transient("busy")) async
    -> ConsumerFailure?
  {
    do {
      try await breaker.run { throw failure }
    } catch {
      return error as? ConsumerFailure
    }
    return nil
  }

  @Test func opensAfterFailuresInARowAndClosesWithASuccess() async throws {
    let breaker = breaker()
    for _ in 0..<2 { #expect(await fail(breaker) == .transient("busy")) }
    try await breaker.run {}
    for _ in 0..<3 { #expect(await fail(breaker) == .transient("busy")) }
    #expect(breaker.isOpen)
    #expect(await fail(breaker) == .waiting("apple-unavailable", for: .seconds(1)))
    alarm.advance(by: .seconds(1))
    try await breaker.run {}
    #expect(!breaker.isOpen)
    #expect(await fail(breaker) == .transient("busy"))
  }

  @Test func oneTriesAndTheOthersWait() async throws {
    let (breaker, gate) = (breaker(), Signal())
    for _ in 0..<3 { _ = await fail(breaker) }
    alarm.advance(by: .seconds(1))
    async let probe: Void = breaker.run { await gate.wait() }
    await turn()
    #expect(await fail(breaker) == .waiting("apple-unavailable", for: .seconds(1)))
    gate.fire()
    try await probe
    #expect(!breaker.isOpen)
  }

  @Test func aTrialThatFailsOpensItForLonger() async {
    let breaker = breaker()
    for _ in 0..<3 { _ = await fail(breaker) }
    alarm.advance(by: .seconds(1))
    #expect(await fail(breaker) == .transient("busy"))
    alarm.advance(by: .milliseconds(1999))
    #expect(await fail(breaker) == .waiting("apple-unavailable", for: .seconds(1)))
    alarm.advance(by: .milliseconds(1))
    #expect(await fail(breaker) == .transient("busy"))
  }

  /// Begins calls that are under way at the same time; each ends when what is returned for it is called.
  private func underWay(
    _ breaker: CircuitBreaker, _ failures: [ConsumerFailure?]
  ) async -> [@Loop () async -> Void] {
    var calls: [@Loop () async -> Void] = []
    for failure in failures {
      let end = Signal()
      let call = Task(executorPreference: Loop.executor) {
        do {
          try await breaker.run {
            await end.wait()
            if let failure { throw failure }
          }
        } catch { #expect(error as? ConsumerFailure == failure) }
      }
      calls.append {
        end.fire()
        await call.value
      }
    }
    await turn()
    return calls
  }

  @Test(arguments: [nil, ConsumerFailure.permanent("not-ours"), .transient("busy"), asking(1)])
  func anAnswerToAnOlderCallDoesNotShortenThePauseThatWasAskedFor(_ late: ConsumerFailure?) async throws {
    try await isOpenForAMinute(after: [Self.asking(60), late, late, late])
  }

  @Test func anAnswerToAnOlderCallMayAskForALongerPause() async throws {
    try await isOpenForAMinute(after: [Self.asking(1), Self.asking(60)])
  }

  private nonisolated static func asking(_ seconds: Int) -> ConsumerFailure {
    .transient("busy", retryAfter: .seconds(seconds))
  }

  private func isOpenForAMinute(after answers: [ConsumerFailure?]) async throws {
    let breaker = breaker()
    for call in await underWay(breaker, answers) { await call() }
    alarm.advance(by: .seconds(59))
    #expect(await fail(breaker) == .waiting("apple-unavailable", for: .seconds(1)))
    alarm.advance(by: .seconds(1))
    #expect(breaker.isOpen)
    try await breaker.run {}
    #expect(!breaker.isOpen)
  }

  @Test func aFailureOfACallFromBeforeTheTrialDoesNotCount() async throws {
    let breaker = breaker()
    let calls = await underWay(breaker, Array(repeating: .transient("gone"), count: 6))
    for call in calls[..<3] { await call() }
    alarm.advance(by: .seconds(1))
    try await breaker.run {}
    for call in calls[3...] { await call() }
    #expect(!breaker.isOpen)
  }

  @Test func whatFailsTogetherOpensItOnce() async throws {
    let breaker = breaker()
    for call in await underWay(breaker, Array(repeating: .transient("gone"), count: 64)) { await call() }
    #expect(breaker.isOpen)
    alarm.advance(by: .seconds(1))
    try await breaker.run {}
    #expect(!breaker.isOpen)
  }

  @Test func whatIsWrongWithOneEventSaysNothingOfTheOtherSide() async {
    let breaker = breaker()
    for _ in 0..<9 { #expect(await fail(breaker, .permanent("not-ours")) == .permanent("not-ours")) }
    #expect(!breaker.isOpen)
  }
}
