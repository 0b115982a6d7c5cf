import Glibc

/// A non-blocking file descriptor, registered once with the loop, edge-triggered for both directions.
///
/// The pattern: try the system call first; when it says `EAGAIN`, call `clearReadable()` (or `clearWritable()`) and
/// wait with `untilReadable()`. At most one task waits for each direction.
@Loop
@safe public final class Descriptor: ReadinessHandler {
  /// Why a wait ended.
  public enum Wake: Sendable, Equatable {
    /// The descriptor is ready, or was closed by its peer: the next call will tell.
    case ready
    /// Somebody called `interrupt` or `close`.
    case interrupted
  }

  /// The number that system calls want. Owned: `close` closes it.
  public nonisolated let number: CInt
  private var registration: Registration?
  private var isReadable = true
  private var isWritable = true
  private var isInterrupted = false
  @safe private var reader: UnsafeContinuation<Wake, Never>?
  @safe private var writer: UnsafeContinuation<Wake, Never>?

  /// Takes the descriptor over and registers it. On failure it is closed.
  public init(owning number: CInt) throws(SystemError) {
    self.number = number
    registration = nil
    do throws(SystemError) {
      registration = try Loop.executor.engine.add(number, .edge, self)
    } catch {
      Glibc.close(number)
      throw error
    }
  }

  /// Says that a read would have blocked: the next `untilReadable` waits.
  public func clearReadable() { isReadable = false }

  /// Says that a write would have blocked: the next `untilWritable` waits.
  public func clearWritable() { isWritable = false }

  /// Suspends until there may be something to read since the last `clearReadable`.
  public func untilReadable() async -> Wake {
    if isInterrupted { return .interrupted }
    if isReadable { return .ready }
    return await unsafe withUnsafeContinuation { continuation in
      // Again: a task that does not prefer the loop's executor gives way between the check above and this place.
      if isInterrupted || isReadable {
        return unsafe continuation.resume(returning: isInterrupted ? .interrupted : .ready)
      }
      precondition(unsafe reader == nil, "two tasks wait for one descriptor")
      unsafe reader = continuation
    }
  }

  /// Suspends until there may be room to write since the last `clearWritable`.
  public func untilWritable() async -> Wake {
    if isInterrupted { return .interrupted }
    if isWritable { return .ready }
    return await unsafe withUnsafeContinuation { continuation in
      if isInterrupted || isWritable {
        return unsafe continuation.resume(returning: isInterrupted ? .interrupted : .ready)
      }
      precondition(unsafe writer == nil, "two tasks wait for one descriptor")
      unsafe writer = continuation
    }
  }

  /// Ends all waits, now and from here on, with `.interrupted`: for deadlines and shutdown.
  public func interrupt() {
    isInterrupted = true
    resume(.interrupted, reading: true, writing: true)
  }

  /// Lets the descriptor be waited for again after `interrupt`.
  public func resumeWaiting() { isInterrupted = false }

  /// Forgets and closes the descriptor. Later calls do nothing.
  public func close() {
    guard let registration else { return }
    self.registration = nil
    Loop.executor.engine.remove(registration)
    Glibc.close(number)
    interrupt()
  }

  /// Called by the loop.
  public func ready(_ readiness: Readiness) {
    let broken = !readiness.isDisjoint(with: .hangup)
    let reading = broken || !readiness.isDisjoint(with: .readable)
    let writing = broken || !readiness.isDisjoint(with: .writable)
    if reading { isReadable = true }
    if writing { isWritable = true }
    resume(.ready, reading: reading, writing: writing)
  }

  private func resume(_ wake: Wake, reading: Bool, writing: Bool) {
    if reading, let waiting = reader {
      reader = nil
      unsafe waiting.resume(returning: wake)
    }
    if writing, let waiting = writer {
      writer = nil
      unsafe waiting.resume(returning: wake)
    }
  }
}

/// A descriptor that somebody else reads or closes (libcurl's, libpq's): watched, and told by a call.
@Loop
public final class WatchedDescriptor: ReadinessHandler {
  private var registration: Registration?
  private let action: @Loop (Readiness) -> Void

  /// Watches `number` for `interest`, level-triggered. The owner closes it; `stop` must come before.
  public init(
    _ number: CInt, interest: Readiness, _ action: @escaping @Loop (Readiness) -> Void
  ) throws(SystemError) {
    self.action = action
    registration = nil
    registration = try Loop.executor.engine.add(number, .level(interest), self)
  }

  /// Watches `number` edge-triggered: told once for each change. For an eventfd whose count nobody reads.
  public init(edgesOf number: CInt, _ action: @escaping @Loop (Readiness) -> Void) throws(SystemError) {
    self.action = action
    registration = nil
    registration = try Loop.executor.engine.add(number, .edge, self)
  }

  /// Changes what it is watched for.
  public func watch(for interest: Readiness) {
    guard let registration else { return }
    Loop.executor.engine.modify(registration, .level(interest))
  }

  /// Stops watching; nothing is called any more.
  public func stop() {
    guard let registration else { return }
    self.registration = nil
    Loop.executor.engine.remove(registration)
  }

  /// Called by the loop.
  public func ready(_ readiness: Readiness) { action(readiness) }
}
