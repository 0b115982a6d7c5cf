import Glibc

/// What the system would keep of a program that ends by a fault: all of its memory, with the keys, the tokens, and the people
/// whose events it was at. No erasure reaches such a file.
package enum CoreDumps {
  /// Has the system write none of this process, nor of those that it starts: RLIMIT_CORE is 0, which systemd-coredump keeps
  /// to as well.
  package static func forbid() {
    var none = rlimit()
    // It cannot fail: everybody may have less than they have.
    unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
  }
}
