import Glibc
import Synchronization

/// A thread of its own for calls that must block (a synced write, a library without an asynchronous interface).
///
/// Work runs in the order in which it was given, one piece at a time. The loop and the cooperative pool never wait.
public final class BlockingThread: Sendable {
  /// What the thread and its owner share: the thread must not keep its owner alive.
  private final class Inbox: Sendable {
    struct State {
      var work: [@Sendable () -> Void] = []
      var isClosed = false
    }

    let state = Mutex(State())
    let bell = Semaphore()

    func runUntilClosed() {
      var work: [@Sendable () -> Void] = []
      while true {
        bell.wait()
        let isClosed = state.withLock { state in
          swap(&work, &state.work)
          return state.isClosed
        }
        for piece in work { piece() }
        work.removeAll(keepingCapacity: true)
        if isClosed { return }
      }
    }
  }

  private let inbox = Inbox()

  /// Starts the thread. `name` is what `top -H` shows, at most 15 bytes.
  public init(named name: String) {
    startDetachedThread(named: name) { [inbox] in inbox.runUntilClosed() }
  }

  deinit { close() }

  /// Runs `work` on the thread and suspends the caller until it is done.
  public func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      give { continuation.resume(returning: work()) }
    }
  }

  /// Runs `work` on the thread and suspends the caller until it is done or has thrown.
  public func run<Value: Sendable>(throwing work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      give { continuation.resume(with: Result { try work() }) }
    }
  }

  /// Lets the thread end once it has done what was given so far. Nothing may be given afterwards.
  public func close() {
    inbox.state.withLock { $0.isClosed = true }
    inbox.bell.signal()
  }

  /// Has `piece` run on the thread, and does not wait for that.
  public func give(_ piece: @escaping @Sendable () -> Void) {
    inbox.state.withLock { state in
      precondition(!state.isClosed, "work for a thread that was closed")
      state.work.append(piece)
    }
    inbox.bell.signal()
  }
}

/// A counting semaphore of POSIX.
@safe private final class Semaphore: @unchecked Sendable {
  // @unchecked: sem_t is made to be used by many threads; the memory lives as long as the object.
  private let handle: UnsafeMutablePointer<sem_t>

  init() {
    unsafe handle = .allocate(capacity: 1)
    unsafe sem_init(handle, 0, 0)
  }

  deinit {
    unsafe sem_destroy(handle)
    unsafe handle.deallocate()
  }

  func signal() { unsafe sem_post(handle) }

  func wait() { while unsafe sem_wait(handle) != 0 {} }
}
