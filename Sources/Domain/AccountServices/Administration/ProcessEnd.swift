import Glibc

/// How our programs end.
package enum ProcessEnd {
  /// Ends the process with this code, once what was printed is written.
  ///
  /// Not by `exit`, which has the libraries take themselves apart while threads that were told to end still use them: what
  /// OpenSSL keeps for a thread was freed twice then, now and then, and a command that had done its work ended with SIGABRT.
  package static func now(with code: Int32) -> Never {
    fflush(nil)
    _exit(code)
  }
}
