import CLinux
import Glibc

/// Signals of the operating system, waited for in the loop instead of interrupting whatever runs.
@Loop
public final class Signals {
  private let descriptor: Descriptor

  /// Blocks the signals in the calling thread and in those that it starts from here on: to be called in `main`, before
  /// any other thread exists.
  public nonisolated static func block(_ signals: [CInt]) {
    var set = Self.set(signals)
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Lets the signals do again what they do by themselves, which is to end the process: for what may be broken off anywhere.
  public nonisolated static func unblock(_ signals: [CInt]) {
    var set = Self.set(signals)
    unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  /// Waits for the given signals, which must have been blocked.
  public init(_ signals: [CInt]) throws(SystemError) {
    var set = Self.set(signals)
    let number = unsafe clinux_signalfd(&set)
    guard number >= 0 else { throw .current }
    descriptor = try Descriptor(owning: number)
  }

  /// The next signal that arrives; nil after `close`.
  public func next() async -> CInt? {
    while await descriptor.untilReadable() == .ready {
      var info = signalfd_siginfo()
      let count = unsafe read(descriptor.number, &info, MemoryLayout<signalfd_siginfo>.size)
      if count == MemoryLayout<signalfd_siginfo>.size { return CInt(info.ssi_signo) }
      descriptor.clearReadable()
    }
    return nil
  }

  /// Ends `next` with nil.
  public func close() { descriptor.close() }

  isolated deinit { descriptor.close() }

  private nonisolated static func set(_ signals: [CInt]) -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for signal in signals { unsafe sigaddset(&set, signal) }
    return set
  }
}
