import Glibc
import TestSupport
import Testing

@testable import EventLoop

/// Each in a process of its own, whose limit it changes.
@Suite(.timeLimit(.minutes(30))) struct DescriptorLimitTests {
  @Test func aProgramHasAllDescriptorsThatItMayHave() async {
    await #expect(processExitsWith: .exitCode(0)) {
      var limit = rlimit(rlim_cur: 64, rlim_max: 512)
      let isSet = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
      guard isSet, DescriptorLimit.current == 64, DescriptorLimit.highest == 512 else { exit(1) }
      exit(Loop.run { DescriptorLimit.current == 512 ? 0 : 2 })
    }
  }

  @Test(arguments: [(1024, 768), (512, 256), (300, 150), (2, 1), (1, 1), (20_000, 19_744)])
  func connectionsLeaveSomeToOthers(_ descriptors: Int, _ connections: Int) {
    #expect(DescriptorLimit.connections(within: descriptors) == connections)
  }

  /// A connection is accepted though there is no descriptor for it, and another once that one has ended.
  @Test func spareDescriptorsAreForWhoMustBeAccepted() async {
    await #expect(processExitsWith: .success) {
      try await Task { @Loop in
        try useOwnDescriptors()
        let (spared, other) = (
          try ListeningSocket(.loopback(port: 0), spares: 2), try ListeningSocket(.loopback(port: 0))
        )
        let clients = try (0..<5).map { _ in try RawClient(spared.address) }
        let turnedAway = try RawClient(other.address)
        var limit = rlimit(rlim_cur: 256, rlim_max: 512)
        try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        @Loop func isRefused(_ socket: ListeningSocket) async throws -> Bool {
          while dup(0) >= 0 {}
          do throws(SystemError) {
            return try await socket.accept() == nil
          } catch {
            return error.code == EMFILE
          }
        }
        #expect(try await isRefused(other))
        let first = try #require(try await spared.accept())
        let second = try #require(try await spared.accept())
        #expect(try await isRefused(spared))
        first.close()
        spared.refillSpares()
        let third = try #require(try await spared.accept())
        #expect(try await isRefused(spared))
        for accepted in [second, third] { accepted.close() }
        limit.rlim_cur = 512
        try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        withExtendedLifetime((clients, turnedAway)) {}
      }.value
    }
  }
}
