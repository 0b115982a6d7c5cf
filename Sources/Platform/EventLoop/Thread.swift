import CLinux
import Glibc

/// The calling thread's identity, never 0.
func currentThread() -> UInt64 { clinux_current_thread() }

/// Starts a thread that runs `body` and then ends. Signals are blocked in it: they belong to the loop's signalfd.
func startDetachedThread(named name: String, _ body: @escaping @Sendable () -> Void) {
  final class Box: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }
  }
  let box = unsafe Unmanaged.passRetained(Box(name, body)).toOpaque()
  var thread = pthread_t()
  let failure = unsafe pthread_create(
    &thread, nil,
    { argument in
      guard let argument = unsafe argument else { return nil }
      let box = unsafe Unmanaged<Box>.fromOpaque(argument).takeRetainedValue()
      var all = sigset_t()
      unsafe sigfillset(&all)
      // Faults of the thread itself stay deliverable, so that a crash shows where it happened.
      for fault in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT] { unsafe sigdelset(&all, fault) }
      unsafe pthread_sigmask(SIG_SETMASK, &all, nil)
      unsafe clinux_name_thread(String(box.name.prefix(15)))
      box.body()
      return nil
    }, box)
  precondition(failure == 0, "no thread for \(name): \(SystemError(code: failure))")
  pthread_detach(thread)
}
