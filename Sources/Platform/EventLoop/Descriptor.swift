import Glibc

/// A non-blocking file descriptor, registered once with the loop, edge-triggered for both directions.
///
/// The pattern: try the system call first; when it says `EAGAIN`, call `clearReadable()` (or `clearWritable()`) and
/// wait with `untilReadable()`. At most one task waits for each direction. A socket that connects is given to it after
/// connect(2): before, the kernel calls it hung up.
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
  /// The peer sends nothing more. The kernel says so once, maybe in the same event as the last data: from then on the
  /// descriptor stays readable, so that whoever read only the data comes back for the end.
  private var hasEnded = false
  /// Whether waits end with `.interrupted` instead of waiting.
  public private(set) var isInterrupted = false
  /// What is called once the peer has ended its side.
  private var ending: (@Loop () -> Void)?
  @safe private var reader: UnsafeContinuation<Void, Never>?
  @safe private var writer: UnsafeContinuation<Void, Never>?

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

  /// Whether `number` is still this descriptor's. Once closed, the kernel may have given the number to another.
  public var isOpen: Bool { registration != nil }

  /// Says that a read would have blocked: the next `untilReadable` waits.
  public func clearReadable() { isReadable = hasEnded }

  /// Says that a write would have blocked: the next `untilWritable` waits.
  public func clearWritable() { isWritable = false }

  /// Suspends until there may be something to read since the last `clearReadable`.
  public func untilReadable() async -> Wake {
    if !isReadable, !isInterrupted {
      await unsafe withUnsafeContinuation { continuation in
        // Again: a task that does not prefer the loop's executor gives way between the check above and this place.
        if isReadable || isInterrupted { return unsafe continuation.resume() }
        precondition(unsafe reader == nil, "two tasks wait for one descriptor")
        unsafe reader = continuation
      }
    }
    // Asked after the wait, not when it ended: between the two somebody may have interrupted, or closed the number.
    return isInterrupted ? .interrupted : .ready
  }

  /// Suspends until there may be room to write since the last `clearWritable`.
  public func untilWritable() async -> Wake {
    if !isWritable, !isInterrupted {
      await unsafe withUnsafeContinuation { continuation in
        // Again: a task that does not prefer the loop's executor gives way between the check above and this place.
        if isWritable || isInterrupted { return unsafe continuation.resume() }
        precondition(unsafe writer == nil, "two tasks wait for one descriptor")
        unsafe writer = continuation
      }
    }
    // Asked after the wait, not when it ended: between the two somebody may have interrupted, or closed the number.
    return isInterrupted ? .interrupted : .ready
  }

  /// Calls `action` once, when the peer sends nothing more or is gone; at once where that is known already. Nil takes
  /// it back.
  public func onEnd(_ action: (@Loop () -> Void)?) {
    ending = action
    if hasEnded { tellEnd() }
  }

  private func tellEnd() {
    let action = ending
    ending = nil
    action?()
  }

  /// Ends all waits, now and from here on, with `.interrupted`: for deadlines and shutdown.
  public func interrupt() {
    isInterrupted = true
    resume(reading: true, writing: true)
  }

  /// Lets whoever waits until it is readable look again.
  func wakeReader() {
    isReadable = true
    resume(reading: true, writing: false)
  }

  /// Lets the descriptor be waited for again after `interrupt`.
  public func resumeWaiting() { isInterrupted = false }

  /// Forgets and closes the descriptor. Later calls do nothing.
  public func close() {
    guard let registration else { return }
    self.registration = nil
    ending = nil
    Loop.executor.engine.remove(registration)
    Glibc.close(number)
    interrupt()
  }

  func ready(_ readiness: Readiness) {
    let broken = !readiness.isDisjoint(with: .hangup)
    let reading = broken || !readiness.isDisjoint(with: .readable)
    let writing = broken || !readiness.isDisjoint(with: .writable)
    if !readiness.isDisjoint(with: .ended) { hasEnded = true }
    if reading { isReadable = true }
    if writing { isWritable = true }
    resume(reading: reading, writing: writing)
    if hasEnded { tellEnd() }
  }

  private func resume(reading: Bool, writing: Bool) {
    if reading, let waiting = reader {
      reader = nil
      unsafe waiting.resume()
    }
    if writing, let waiting = writer {
      writer = nil
      unsafe waiting.resume()
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

  func ready(_ readiness: Readiness) { action(readiness) }
}
