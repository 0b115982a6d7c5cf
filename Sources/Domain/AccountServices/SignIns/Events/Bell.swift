import EventLoop

/// What tasks wait for: until somebody rings it, a time has come, or they are cancelled.
@Loop
final class Bell {
  @Loop
  private final class Waiter {
    private var continuation: CheckedContinuation<Void, Never>?

    func wait(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }

    func resume() {
      continuation?.resume()
      continuation = nil
    }
  }

  /// How often it was rung: whoever has looked around before it waits says at which count that was.
  private(set) var rings = 0
  private var waiting: [Waiter] = []

  /// Wakes whoever waits, in the order in which they have come.
  func ring() {
    rings += 1
    let woken = waiting
    waiting = []
    for waiter in woken { waiter.resume() }
  }

  /// Returns once it was rung since that count, at `time`, or when the task is cancelled.
  func wait(since count: Int, until time: MonotonicTime) async {
    let (waiter, alarm) = (Waiter(), Deadline())
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if rings != count || Task.isCancelled { return continuation.resume() }
        waiter.wait(continuation)
        waiting.append(waiter)
        alarm.onPass { waiter.resume() }
        alarm.set(time)
      }
    } onCancel: {
      Task { @Loop in waiter.resume() }
    }
    alarm.invalidate()
    waiting.removeAll { $0 === waiter }
  }
}
