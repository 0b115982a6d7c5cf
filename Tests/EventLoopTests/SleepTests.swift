import EventLoop
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(30))) struct SleepTests {
  @Loop
  @Test func endsWhenItsMomentHasCome() async throws {
    let moment = MonotonicTime.now + .milliseconds(3)
    try await Loop.sleep(until: moment)
    #expect(MonotonicTime.now >= moment)
    try await Loop.sleep(until: moment)
    try await Loop.sleep(for: .zero)
  }

  @Loop
  @Test func endsWhenItsTaskIsCancelled() async {
    let task = Task { @Loop in
      await #expect(throws: CancellationError.self) { try await Loop.sleep(until: .distantFuture) }
      await #expect(throws: CancellationError.self) { try await Loop.sleep(for: .seconds(3600)) }
    }
    await turn()
    task.cancel()
    await task.value
  }

  @Test func endsWhenItsTaskIsCancelledFromAnotherThread() async {
    await withTaskGroup { group in
      for _ in 0..<200 {
        group.addTask { await expectCancellation() }
      }
      group.cancelAll()
    }
  }

  @Test func manySleepersEachWakeWhenTheirOwnMomentHasCome() async {
    await withTaskGroup { group in
      for index in (0..<100).shuffled() { group.addTask { await sleep(.microseconds(100 * index)) } }
    }
  }

  @Loop
  private func sleep(_ duration: Duration) async {
    let moment = MonotonicTime.now + duration
    await #expect(throws: Never.self) { try await Loop.sleep(until: moment) }
    #expect(MonotonicTime.now >= moment)
  }

  @Loop
  private func expectCancellation() async {
    await #expect(throws: CancellationError.self) { try await Loop.sleep(for: .seconds(3600)) }
  }
}
