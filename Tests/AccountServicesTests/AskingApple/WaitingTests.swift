import EventLoop
import Testing

@testable import AccountServices

/// How what asks Apple about many waits for a change.
@Loop @Suite(.timeLimit(.minutes(5))) struct WaitingTests {
  /// What is waited for.
  @Loop private final class Door {
    let waiting = Waiting(.system)
    var isShut = true

    /// Opens after so many turns of the loop.
    func open(after turns: Int) async {
      for _ in 0..<turns { await Loop.nextTurn() }
      isShut = false
      waiting.signal()
    }
  }

  /// A test's task does not prefer the loop's executor: it gives way between its look and its wait.
  @Test func aChangeBetweenTheLookAndTheWaitIsNotMissed() async {
    for turns in 0..<400 {
      let door = Door()
      async let change: Void = door.open(after: turns % 8)
      await door.waiting.change { door.isShut }
      await change
      #expect(!door.isShut)
    }
  }
}
