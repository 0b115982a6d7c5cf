import EventLoop
import Glibc

/// From here on the loop's thread has a table of descriptors of its own, as unshare(2) with CLONE_FILES makes it: what it
/// opens takes nothing from the other threads, so that it can be left without a descriptor while they are not.
///
/// The libdispatch that runs the tests' other tasks looks every second which of its threads are at work, and ends the
/// process by SIGILL when it cannot open their files in /proc. The programs have no such threads: `Loop.run` runs all.
@Loop
public func useOwnDescriptors() throws {
  let files: CInt = 0x400  // CLONE_FILES of <sched.h>
  typealias Unshare = @convention(c) (CInt) -> CInt
  guard let symbol = unsafe dlsym(nil, "unshare") else { throw SystemError(code: ENOSYS) }
  guard unsafe unsafeBitCast(symbol, to: Unshare.self)(files) == 0 else { throw SystemError.current }
}
