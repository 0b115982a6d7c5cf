import EventLoop
import Glibc

/// What a program writes into one pipe, and a wait for more of it.
@Loop
final class ProgramOutput {
  /// Longer than anything takes, on however busy a machine: it only keeps a test that fails from waiting for ever.
  private static let patience = Duration.seconds(300)

  /// All of it so far.
  private(set) var received: [UInt8] = []
  /// Whether the program has closed its side, as it does when it ends.
  private(set) var hasEnded = false
  private let alarm = Deadline()
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Takes over the reading side of a pipe.
  init(_ number: CInt) throws(SystemError) {
    _ = fcntl(number, F_SETFL, O_NONBLOCK)
    let descriptor = try Descriptor(owning: number)
    alarm.onPass { [weak self] in self?.tell() }
    Task { @Loop [weak self] in
      while await descriptor.untilReadable() == .ready, let self, readSome(descriptor) {}
      descriptor.close()
      self?.hasEnded = true
      self?.tell()
    }
  }

  isolated deinit { alarm.invalidate() }

  /// Waits until `condition` holds of what has come. False when nothing more comes, or not in time.
  func wait(until condition: () -> Bool) async throws -> Bool {
    let end = MonotonicTime.now + Self.patience
    while true {
      let count = received.count
      if condition() { return true }
      if hasEnded || end <= .now { return false }
      alarm.set(end)
      await withCheckedContinuation { continuation in
        // Between the check above and this place more may have come.
        if hasEnded || received.count != count { return continuation.resume() }
        waiting.append(continuation)
      }
    }
  }

  /// Takes what is there. False at the end.
  private func readSome(_ descriptor: Descriptor) -> Bool {
    var room = [UInt8](repeating: 0, count: 65_536)
    let count = unsafe read(descriptor.number, &room, room.count)
    if count > 0 {
      received.append(contentsOf: room[..<count])
      tell()
      return true
    }
    if count < 0, errno == EAGAIN {
      descriptor.clearReadable()
      return true
    }
    return false
  }

  private func tell() {
    let resumed = waiting
    waiting = []
    for continuation in resumed { continuation.resume() }
  }
}
