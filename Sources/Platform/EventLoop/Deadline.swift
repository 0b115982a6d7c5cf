/// A moment by which something must have happened, and what is called if it has not.
///
/// All deadlines of the loop stand in one heap. Moving one later, which every request of a connection does, only
/// writes a field: the heap learns of it when the old moment comes. So a deadline costs no timer a request.
@Loop
public final class Deadline {
  /// When it is due; `distantFuture` while nothing is awaited.
  public fileprivate(set) var due = MonotonicTime.distantFuture
  /// The moment under which the heap knows it, and where in the heap; nil while it does not.
  fileprivate var filed: MonotonicTime?
  fileprivate var position = 0
  private var action: (@Loop () -> Void)?

  /// A deadline that is not set. `action` is called on the loop, once each time that it becomes due.
  public nonisolated init() {}

  /// Sets what is called when the deadline passes.
  public func onPass(_ action: @escaping @Loop () -> Void) { self.action = action }

  /// Moves the deadline to `time`, whether it was set or not.
  public func set(_ time: MonotonicTime) { Loop.executor.engine.deadlines.set(self, time) }

  /// Takes it back: nothing is called. Costs nothing, but the loop may hold the deadline until its moment.
  public func clear() { due = .distantFuture }

  /// Takes it back for good: the loop lets go of it, and it of its action.
  public func invalidate() {
    clear()
    if filed != nil { Loop.executor.engine.deadlines.remove(self) }
    action = nil
  }

  func pass() {
    guard due != .distantFuture else { return }
    due = .distantFuture
    action?()
  }
}

/// The loop's deadlines, earliest first: a binary heap whose members know their place.
struct DeadlineHeap {
  private struct Entry {
    var time: MonotonicTime
    let deadline: Deadline
  }

  private var entries: [Entry] = []

  var count: Int { entries.count }

  var next: MonotonicTime? { entries.first?.time }

  @Loop
  mutating func set(_ deadline: Deadline, _ time: MonotonicTime) {
    deadline.due = time
    if time == .distantFuture { return }
    let entry = Entry(time: time, deadline: deadline)
    if let filed = deadline.filed {
      if time < filed { siftUp(deadline.position, entry) }
    } else {
      entries.append(entry)
      siftUp(entries.count - 1, entry)
    }
  }

  @Loop
  mutating func remove(_ deadline: Deadline) {
    deadline.filed = nil
    let last = entries.removeLast()
    guard last.deadline !== deadline else { return }
    let gap = deadline.position
    if last.time < entries[gap].time { siftUp(gap, last) } else { siftDown(gap, last) }
  }

  /// Takes out a deadline whose moment in the heap has passed; those that moved later meanwhile sink to where they
  /// belong. One that was cleared comes out like the others: it must not be released while the heap is being changed.
  @Loop
  mutating func popPassed(_ now: MonotonicTime) -> Deadline? {
    while let first = entries.first, first.time <= now {
      let due = first.deadline.due
      if due == first.time || due == .distantFuture {
        remove(first.deadline)
        return first.deadline
      }
      siftDown(0, Entry(time: due, deadline: first.deadline))
    }
    return nil
  }

  /// Puts `entry` into the place that is free, or above it.
  @Loop
  private mutating func siftUp(_ start: Int, _ entry: Entry) {
    var gap = start
    while gap > 0 {
      let parent = (gap - 1) / 2
      guard entry.time < entries[parent].time else { break }
      place(entries[parent], gap)
      gap = parent
    }
    place(entry, gap)
  }

  /// Puts `entry` into the place that is free, or below it.
  @Loop
  private mutating func siftDown(_ start: Int, _ entry: Entry) {
    var gap = start
    while true {
      var child = 2 * gap + 1
      guard child < entries.count else { break }
      if child + 1 < entries.count, entries[child + 1].time < entries[child].time { child += 1 }
      guard entries[child].time < entry.time else { break }
      place(entries[child], gap)
      gap = child
    }
    place(entry, gap)
  }

  @Loop
  private mutating func place(_ entry: Entry, _ position: Int) {
    entries[position] = entry
    entry.deadline.filed = entry.time
    entry.deadline.position = position
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
