import EventLoop
import Glibc
import Synchronization

/// The end of a process that the tests started, for which a thread waits from the start.
///
/// However busy the loop is, it is no zombie for long: while there is any, the thread of Swift Testing that waits for the
/// ends of exit tests takes a processor for itself.
final class ProcessEnd: Sendable {
  private struct State {
    var status: CInt?
    var waiting: [CheckedContinuation<CInt, Never>] = []
  }

  private let identifier: pid_t
  private let state = Mutex(State())

  init(of identifier: pid_t) {
    self.identifier = identifier
    let thread = BlockingThread(named: "wait-for-end")
    thread.give { self.wait() }
    thread.close()
  }

  /// What wait(2) says of it, once it has come.
  func status() async -> CInt {
    await withCheckedContinuation { continuation in
      let status = state.withLock { state in
        if state.status == nil { state.waiting.append(continuation) }
        return state.status
      }
      if let status { continuation.resume(returning: status) }
    }
  }

  /// Sends the process a signal, unless it has ended.
  func signal(_ number: Int32) {
    state.withLock { if $0.status == nil { Glibc.kill(identifier, number) } }
  }

  private func wait() {
    var information = unsafe siginfo_t()
    while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    // Nobody may be sending a signal meanwhile: once waited for, the number may be another's.
    let (status, waiting) = state.withLock { state in
      var status: CInt = 0
      while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
      state.status = status
      return (status, state.waiting)
    }
    for continuation in waiting { continuation.resume(returning: status) }
  }
}
