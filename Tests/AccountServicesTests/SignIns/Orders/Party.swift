import EventLoop

/// Somebody who goes on only where a test says so, from one place where others may come first to the next.
@Loop
final class Party {
  private var work: (@Loop () async -> Void)?
  private var held: CheckedContinuation<Void, Never>?
  private var awaited: CheckedContinuation<Void, Never>?
  private var isOver = false
  /// Whether it stops nowhere any more.
  private(set) var isFree = false

  /// Somebody who has not begun yet.
  init(_ work: @escaping @Loop () async -> Void) { self.work = work }

  /// A place where others may come first.
  func pause() async {
    if isFree { return }
    await withCheckedContinuation { continuation in
      held = continuation
      stopped()
    }
  }

  /// Lets them go on, and returns once they have stopped again, or are done.
  func step() async {
    guard !isOver else { return }
    await withCheckedContinuation { continuation in
      awaited = continuation
      if let work {
        self.work = nil
        Task(executorPreference: Loop.executor) { await self.begin(work) }
      } else {
        held?.resume()
        held = nil
      }
    }
  }

  /// Lets them go on to their end.
  func finish() async {
    isFree = true
    await step()
  }

  private func begin(_ work: @Loop () async -> Void) async {
    await work()
    isOver = true
    stopped()
  }

  private func stopped() {
    awaited?.resume()
    awaited = nil
  }
}
