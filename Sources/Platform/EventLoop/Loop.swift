import Glibc
import Synchronization

/// The process's event loop, as a global actor.
///
/// Whatever has a file descriptor waits here, and async code that is isolated to `@Loop` runs on the loop's own
/// thread: no hop, no lock. The compiler proves that a connection's state never leaves it. There is one loop a
/// process; a host with more cores runs more processes (`SO_REUSEPORT`).
///
/// Tasks that live here prefer the loop's executor (`Task(executorPreference: Loop.executor)`, `Loop.run`): then a call
/// between isolated functions goes on at once. Any other task runs here too, but gives way at each isolated `async`
/// call, `withCheckedContinuation` among them: what was checked before it is checked again in its closure.
///
/// A program gives its main thread to the loop with `Loop.run`. Where nobody does (in tests), the loop starts a thread
/// of its own with the first job.
@globalActor
public actor Loop {
  /// The one instance.
  public static let shared = Loop()

  /// The executor behind the actor: also a `TaskExecutor`, so that a task which prefers it never leaves the thread.
  public static let executor = LoopExecutor()

  /// What the runtime asks to find the actor's thread.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe Self.executor.asUnownedSerialExecutor()
  }

  /// The moment at which the current turn of the loop began: the same for everything that runs in the turn.
  @Loop public static var now: MonotonicTime { executor.engine.now }

  /// Suspends until the loop has turned: whatever else is ready goes first, and what the kernel has to report.
  ///
  /// Not `Task.yield`, which leaves the thread and comes back where the task does not prefer the loop's executor.
  @Loop
  public static func nextTurn() async {
    await withCheckedContinuation { waiting in afterTurn { waiting.resume() } }
  }

  /// Calls `action` when the loop has turned. The tasks that it resumes go on behind all that the kernel reported: they
  /// are the last of the next round.
  @Loop
  public static func afterTurn(_ action: @escaping @Loop () -> Void) { executor.engine.waitingForTurn.append(action) }

  /// Makes the calling thread the loop's, runs `body` on it and everything that waits there, and returns what `body`
  /// returned. For `main`, once, before anything else used the loop. The process may have as many descriptors as the
  /// system lets it have from then on.
  public nonisolated static func run(_ body: @escaping @Loop @Sendable () async -> Int32) -> Int32 {
    DescriptorLimit.raise()
    return executor.run(until: body)
  }

  /// Runs `body` at once if the caller is already on the loop's thread, which it must be.
  ///
  /// For callbacks of C libraries, which the compiler cannot see to be on the loop.
  public nonisolated static func assumeIsolated<Value: Sendable>(_ body: @Loop () throws -> Value) rethrows -> Value {
    executor.checkIsolated()
    return try withoutActuallyEscaping(body) { escaping in
      // The same as MainActor.assumeIsolated: the check above is what the type system was missing.
      try unsafe unsafeBitCast(escaping, to: (() throws -> Value).self)()
    }
  }
}

/// The executor of `Loop`: it queues jobs for the loop's thread, and wakes it where they come from another.
public final class LoopExecutor: TaskExecutor, SerialExecutor, @unchecked Sendable {
  // @unchecked: `engine` and `local` are touched by the loop's thread alone (checked by `checkIsolated`), the rest is
  // behind `inbox` or atomic.
  let engine = Engine()
  private var local: [UnownedJob] = []
  private let inbox = Mutex<[UnownedJob]>([])
  private let thread = Atomic<UInt64>(0)
  private let started = Mutex(false)

  init() {
    // A peer that has closed is an error of the write, not the end of the process: OpenSSL writes without MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN)
  }

  /// Called by the runtime: queues a job, and wakes the loop if it comes from another thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrentThread {
      local.append(job)
      return
    }
    let wasEmpty = inbox.withLock { queue in
      defer { queue.append(job) }
      return queue.isEmpty
    }
    if wasEmpty { engine.wake() }
    if thread.load(ordering: .acquiring) == 0 { startThread() }
  }

  /// Called by the runtime.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

  /// Called by the runtime.
  public func asUnownedTaskExecutor() -> UnownedTaskExecutor { unsafe UnownedTaskExecutor(ordinary: self) }

  /// Traps unless the caller is on the loop.
  public func checkIsolated() { precondition(isCurrentThread, "this must run on the event loop") }

  /// Whether the caller is on the loop.
  public func isIsolatingCurrentContext() -> Bool? { isCurrentThread }

  var isCurrentThread: Bool { thread.load(ordering: .relaxed) == currentThread() }

  /// A thread for the loop where no program gave its own.
  private func startThread() {
    let first = started.withLock { started in
      defer { started = true }
      return !started
    }
    guard first else { return }
    startDetachedThread(named: "event-loop") { [self] in
      thread.store(currentThread(), ordering: .releasing)
      turn(while: { true })
    }
  }

  fileprivate func run(until body: @escaping @Loop @Sendable () async -> Int32) -> Int32 {
    let first = started.withLock { started in
      defer { started = true }
      return !started
    }
    precondition(first, "the event loop runs already")
    thread.store(currentThread(), ordering: .releasing)
    let result = Result()
    Task(executorPreference: self) { result.value = await body() }
    turn(while: { result.value == nil })
    return result.value ?? 0
  }

  /// What `run` waits for. @unchecked: written and read on the loop's thread alone.
  private final class Result: @unchecked Sendable {
    var value: Int32?
  }

  /// The loop itself: jobs, then deadlines that have passed, then whatever the kernel reports.
  private func turn(while goOn: () -> Bool) {
    let serial = unsafe asUnownedSerialExecutor()
    let task = unsafe asUnownedTaskExecutor()
    var round: [UnownedJob] = []
    engine.now = .now
    while goOn() {
      // Only what was queued when the round began: a job that queues itself again cannot starve the sockets.
      swap(&round, &local)
      for job in round { unsafe job.runSynchronously(isolatedTo: serial, taskExecutor: task) }
      round.removeAll(keepingCapacity: true)
      if !goOn() { return }
      Loop.assumeIsolated {
        engine.passDeadlines()
        engine.poll(block: local.isEmpty)
      }
      if engine.wasWoken {
        engine.wasWoken = false
        inbox.withLock { jobs in
          local.append(contentsOf: jobs)
          jobs.removeAll(keepingCapacity: true)
        }
      }
    }
  }
}
