public import EventLoop

/// Lets tasks wait until a test says so.
@Loop
public final class Signal {
  /// Whether it was fired since the last wait ended.
  public private(set) var isFired = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Not fired.
  public nonisolated init() {}

  /// Ends the waits, or the next one if there is none.
  public func fire() {
    isFired = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }

  /// Waits until it is fired.
  public func wait() async {
    if !isFired {
      await withCheckedContinuation { continuation in
        if isFired { return continuation.resume() }
        waiting.append(continuation)
      }
    }
    isFired = false
  }
}
