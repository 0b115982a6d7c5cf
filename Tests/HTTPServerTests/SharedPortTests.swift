import EventLoop
import HTTPServer
import TestSupport
import Testing

/// Servers that share a port, started and stopped while clients connect.
@Suite(.serialized, .timeLimit(.minutes(30))) struct SharedPortTests {
  /// Eight threads of another program connect as fast as they can, with one request each; meanwhile one of two servers
  /// ends in good order and another begins, several times. Whoever chose the one that ends is served by it, or, after a
  /// second, by another: nobody is refused or reset.
  @Loop
  @Test(Python.isThere) func refuseNobodyWhileTheyComeAndGo() async throws {
    let first = try TestServer(sharing: .loopback(port: 0), grace: .seconds(300), handler: echo)
    let address = first.server.address
    var second = try TestServer(sharing: address, grace: .seconds(300), handler: echo)
    let script = Repository.root + "/Tests/HTTPServerTests/Python/connect-often.py"
    try await RunningProgram.run(path: Python.interpreter, [script, "\(address.port)", "8"]) { program in
      var served: UInt64 = 0
      for _ in 0..<5 {
        // Both have their share of the clients when one of them ends.
        let (some, others) = (first.statistics.requests + 20, second.statistics.requests + 20)
        try await until {
          first.statistics.requests >= some && second.statistics.requests >= others
        }
        await second.server.drain(within: .seconds(300))
        served += second.statistics.requests
        #expect(second.statistics.accepted == second.statistics.requests)
        second = try TestServer(sharing: address, grace: .seconds(300), handler: echo)
      }
      program.endInput()
      #expect(try await program.untilEnd() == .exit(0))
      served += first.statistics.requests + second.statistics.requests
      #expect(program.output == "answered \(served)\n", "\(program.errors)")
    }
    await first.close()
    await second.close()
  }

  /// Who stands in the queue of a server that ends is answered, though nobody shares the port.
  @Loop
  @Test func theQueueIsServedBeforeTheEnd() async throws {
    let server = try TestServer(handler: echo)
    let clients = try (0..<30).map { _ in try server.connect() }
    for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    let draining = Task { await server.server.drain(within: .seconds(300)) }
    for client in clients {
      #expect(try await client.answer().status == 200)
      #expect(try await client.readToEnd() == "")
    }
    await draining.value
    #expect(server.statistics.requests == 30)
    await server.close()
  }
}
