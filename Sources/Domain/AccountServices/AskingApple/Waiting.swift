import EventLoop

/// How what runs on the loop waits: for a moment, or until something has changed. Once it is told to end, it waits for no
/// moment any more.
@Loop
final class Waiting {
  /// Whether it was told to end.
  private(set) var isEnding = false
  private let clock: AskingClock
  private var naps: [Int: Task<Void, Never>] = [:]
  private var napCount = 0
  private var waiters: [CheckedContinuation<Void, Never>] = []

  /// Nobody waits yet.
  nonisolated init(_ clock: AskingClock) { self.clock = clock }

  /// Waits for no moment any more, and has those go on who do.
  func end() {
    isEnding = true
    for nap in naps.values { nap.cancel() }
    signal()
  }

  /// Returns at that moment, or once it is told to end.
  func nap(until time: MonotonicTime) async {
    guard !isEnding, time > clock.now() else { return }
    napCount += 1
    let number = napCount
    let nap = Task(executorPreference: Loop.executor) { [clock] in
      do { try await clock.sleep(time) } catch { return }  // told to end
    }
    naps[number] = nap
    await nap.value
    naps[number] = nil
  }

  /// Says that something has changed.
  func signal() {
    let woken = waiters
    waiters = []
    for waiter in woken { waiter.resume() }
  }

  /// Returns once `isBlocked` no longer holds: it is asked now, and whenever something has changed.
  func change(while isBlocked: @Loop () -> Bool) async {
    while isBlocked() {
      await withCheckedContinuation { waiter in
        // A task that does not prefer the loop's executor has given way since it looked.
        if isBlocked() { waiters.append(waiter) } else { waiter.resume() }
      }
    }
  }
}
