import EventLoop
import Glibc
import TestSupport
import Testing

@testable import HTTPServer

/// A loop that has no descriptors left, each in a process of its own.
@Suite(.timeLimit(.minutes(30))) struct DescriptorTests {
  private static let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  /// From here on the loop can have only `count` further descriptors.
  private static func leave(_ count: CInt) throws {
    let next = dup(0)
    close(next)
    var limit = rlimit(rlim_cur: rlim_t(next + count), rlim_max: rlim_t(DescriptorLimit.highest))
    try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
  }

  /// Sixty silent peers are there, for twenty of whom there are descriptors; who comes after them is served.
  @Test func whoHasShownNothingMakesRoomWhereThereIsNoDescriptor() async {
    await #expect(processExitsWith: .success) {
      try await Task { @Loop in
        try useOwnDescriptors()
        let server = try TestServer(limits: .lenient(connections: 1000), handler: echo)
        let silent = try (0..<60).map { _ in try server.connect() }
        let client = try server.connect()
        try await client.send(DescriptorTests.request)
        try DescriptorTests.leave(20)
        #expect(try await client.answer().status == 200)
        #expect(server.statistics.acceptFailures > 0)
        #expect(server.statistics.shed >= 40)
        #expect(server.statistics.fullTimes == 0)
        withExtendedLifetime(silent) {}
        await server.close()
      }.value
    }
  }

  /// Where others took all of them, it is always reachable all the same.
  @Test func whoHasSpareDescriptorsIsAlwaysReachable() async {
    await #expect(processExitsWith: .success) {
      try await Task { @Loop in
        try useOwnDescriptors()
        let server = try TestServer(spareDescriptors: 1, handler: echo)
        let clients = try (0..<3).map { _ in try server.connect() }
        try DescriptorTests.leave(0)
        // Each stays open on its own side, so that what it has does not help the server.
        for client in clients {
          try await client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
          #expect(try await client.answer().status == 200)
          client.endWriting()
          #expect(try await client.readToEnd() == "")
        }
        await server.close()
        withExtendedLifetime(clients) {}
      }.value
    }
  }

  @Test func aServerHoldsNoMoreConnectionsThanThereMayBeDescriptors() async {
    await #expect(processExitsWith: .success) {
      try await Task { @Loop in
        var limit = rlimit(rlim_cur: 600, rlim_max: rlim_t(DescriptorLimit.highest))
        try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        for (wanted, limit) in [(1000, 344), (344, 344), (10, 10)] {
          let server = try TestServer(limits: .lenient(connections: wanted), handler: echo)
          #expect(server.server.connectionLimit == limit)
          await server.close()
        }
      }.value
    }
  }
}
