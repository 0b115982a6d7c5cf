import EventLoop

/// What tasks wait for until another lets them pass.
@Loop
final class Gate {
  private var isOpen = true
  private var waiting: [CheckedContinuation<Void, Never>] = []

  nonisolated init() {}

  func close() { isOpen = false }

  func open() {
    isOpen = true
    for continuation in waiting { continuation.resume() }
    waiting.removeAll(keepingCapacity: true)
  }

  func pass() async {
    if isOpen { return }
    await withCheckedContinuation { continuation in
      // Again: a task that does not prefer the loop's executor gives way between the check above and this place.
      if isOpen { return continuation.resume() }
      waiting.append(continuation)
    }
  }
}
