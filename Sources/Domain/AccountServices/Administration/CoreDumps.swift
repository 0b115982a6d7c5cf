import Glibc

/// What the system would keep of a program that ends by a fault: all of its memory, with the keys, the tokens, and the people
/// whose events it was at. No erasure reaches such a file.
package enum CoreDumps {
  /// Has the system write none of this process, nor of those that it starts: RLIMIT_CORE is 0 (core(5)). A program that the
  /// system pipes core dumps to sees that limit, too; systemd-coredump keeps to it.
  package static func forbid() {
    var none = rlimit()
    // It cannot fail: everybody may have less than they have.
    unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
  }
}
