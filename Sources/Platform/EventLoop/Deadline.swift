/// A moment by which something must have happened, and what is called if it has not.
///
/// All deadlines of the loop stand in one heap. Moving one later, which every request of a connection does, only
/// writes a field: the heap learns of it when the old moment comes. So a deadline costs no timer a request.
@Loop
public final class Deadline {
  /// When it is due; `distantFuture` while nothing is awaited.
  public private(set) var due = MonotonicTime.distantFuture
  /// The moment under which the heap knows it; nil while it does not.
  fileprivate var filed: MonotonicTime?
  fileprivate var stamp: UInt64 = 0
  private var action: (@Loop () -> Void)?

  /// A deadline that is not set. `action` is called on the loop, once each time that it becomes due.
  public nonisolated init() {}

  /// Sets what is called when the deadline passes.
  public func onPass(_ action: @escaping @Loop () -> Void) { self.action = action }

  /// Moves the deadline to `time`, whether it was set or not.
  public func set(_ time: MonotonicTime) {
    due = time
    if time == .distantFuture { return }
    if let filed, filed <= time { return }
    Loop.executor.engine.deadlines.file(self, at: time)
  }

  /// Takes it back: nothing is called.
  public func clear() { due = .distantFuture }

  /// Forgets the action too, so that nothing is kept alive by it.
  public func invalidate() {
    clear()
    action = nil
  }

  func pass() {
    due = .distantFuture
    action?()
  }
}

/// The loop's deadlines, earliest first.
struct DeadlineHeap {
  private struct Entry {
    let time: MonotonicTime
    let stamp: UInt64
    let deadline: Deadline
  }

  private var entries: [Entry] = []
  private var stamps: UInt64 = 0

  var next: MonotonicTime? { entries.first?.time }

  @Loop
  mutating func file(_ deadline: Deadline, at time: MonotonicTime) {
    stamps &+= 1
    deadline.stamp = stamps  // an earlier entry of the same deadline is void from here on
    deadline.filed = time
    entries.append(Entry(time: time, stamp: stamps, deadline: deadline))
    siftUp(entries.count - 1)
    if entries.count > 64, entries.count & (entries.count - 1) == 0 { dropVoid() }
  }

  /// Takes the first deadline that has passed; those that moved later meanwhile are filed anew.
  @Loop
  mutating func popPassed(_ now: MonotonicTime) -> Deadline? {
    while let first = entries.first, first.time <= now {
      removeFirst()
      let deadline = first.deadline
      guard deadline.stamp == first.stamp else { continue }
      deadline.filed = nil
      if deadline.due == .distantFuture { continue }
      if deadline.due > now {
        file(deadline, at: deadline.due)
        continue
      }
      return deadline
    }
    return nil
  }

  /// Entries whose deadline moved to an earlier moment stay behind: they go when the heap has doubled.
  @Loop
  private mutating func dropVoid() {
    let kept = entries.filter { $0.deadline.stamp == $0.stamp && $0.deadline.due != .distantFuture }
    for entry in entries where entry.deadline.stamp == entry.stamp && entry.deadline.due == .distantFuture {
      entry.deadline.filed = nil
    }
    entries = []
    entries.reserveCapacity(kept.count)
    for entry in kept {
      entries.append(entry)
      siftUp(entries.count - 1)
    }
  }

  private mutating func removeFirst() {
    let last = entries.removeLast()
    guard !entries.isEmpty else { return }
    entries[0] = last
    var parent = 0
    while true {
      var child = 2 * parent + 1
      guard child < entries.count else { return }
      if child + 1 < entries.count, entries[child + 1].time < entries[child].time { child += 1 }
      guard entries[child].time < entries[parent].time else { return }
      entries.swapAt(child, parent)
      parent = child
    }
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      guard entries[child].time < entries[parent].time else { return }
      entries.swapAt(child, parent)
      child = parent
    }
  }
}

extension Loop {
  /// Suspends until `time`. Throws `CancellationError` at once when the task is cancelled.
  @Loop
  public static func sleep(until time: MonotonicTime) async throws {
    try Task.checkCancellation()
    let sleeper = Sleeper()
    await withTaskCancellationHandler {
      await sleeper.wait(until: time)
    } onCancel: {
      Task { @Loop in sleeper.wake() }
    }
    try Task.checkCancellation()
  }

  /// Suspends for `duration`, at least. Throws `CancellationError` at once when the task is cancelled.
  @Loop
  public static func sleep(for duration: Duration) async throws { try await sleep(until: .now + duration) }
}

/// One waiting `sleep`.
@Loop
private final class Sleeper {
  private let deadline = Deadline()
  private var waiter: CheckedContinuation<Void, Never>?
  private var isOver = false

  nonisolated init() {}

  func wait(until time: MonotonicTime) async {
    await withCheckedContinuation { continuation in
      if isOver { return continuation.resume() }
      waiter = continuation
      deadline.onPass { [self] in wake() }
      deadline.set(time)
    }
  }

  func wake() {
    isOver = true
    deadline.invalidate()
    waiter?.resume()
    waiter = nil
  }
}
