import EventLoop
import HTTPServer
import TestSupport
import Testing

/// Answers that go on for as long as there is something to say.
@Loop @Suite(.timeLimit(.minutes(30))) struct EndlessStreamTests {
  private let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  private let moment = Duration.milliseconds(50)

  /// An endless stream that says what it is told to, and what became of it.
  @Loop
  private final class Script {
    private(set) var wasCancelled = false
    private var pieces: [String] = []
    private var hasEnded = false
    private let told = Signal()
    let over = Signal()

    func say(_ piece: String) {
      pieces.append(piece)
      told.fire()
    }

    func end() {
      hasEnded = true
      told.fire()
    }

    func response(patience: Duration = .seconds(600)) -> HTTPResponse {
      HTTPResponse(
        status: 200,
        body: .endlessStream(patience: patience) { [self] writer in
          defer { over.fire() }
          await withTaskCancellationHandler {
            await follow(writer)
          } onCancel: {
            Task { @Loop in cancel() }
          }
          wasCancelled = Task.isCancelled
          try Task.checkCancellation()
        })
    }

    private func cancel() { end() }

    private func follow(_ writer: HTTPBodyWriter) async {
      while true {
        while !pieces.isEmpty {
          do throws(HTTPBodyWriter.Lost) {
            try await writer.write(Array(pieces.removeFirst().utf8))
          } catch {
            return
          }
        }
        if hasEnded { return }
        await told.wait()
      }
    }
  }

  private func untilSaid(_ text: String, to client: RawClient) async throws {
    try await client.read { String(decoding: $0, as: UTF8.self).hasSuffix(text) }
  }

  @Test func outliveTheDeadlineOfTheirRequest() async throws {
    let script = Script()
    let server = try TestServer(deadlines: .lenient(request: moment)) { request in
      if request.hasPath(Array("/endless".utf8)) { return script.response() }
      await #expect(throws: CancellationError.self) { try await Loop.sleep(for: .seconds(3600)) }
      return .text("too late")
    }
    let (listener, late) = (try server.connect(), try server.connect())
    try await listener.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
    script.say("one")
    try await untilSaid("3\r\none\r\n", to: listener)
    // A request that began later has had its time: so has the first one.
    try await late.send(request)
    #expect(try await late.readToEnd() == "")
    script.say("two")
    try await untilSaid("3\r\ntwo\r\n", to: listener)
    script.end()
    try await untilSaid("0\r\n\r\n", to: listener)
    // The next request on the connection has a deadline again.
    try await listener.send(request)
    #expect(try await listener.readToEnd() == "")
    #expect(server.statistics.timeouts == 2)
    await server.close()
  }

  @Test func endWhereTheirReaderStopsReading() async throws {
    let (results, _) = try await withReaderThatReadsNothing { writer, results in
      let piece = [UInt8](repeating: 7, count: 65_536)
      while true {
        try await writer.write(piece)
        results.written += piece.count
      }
    }
    // What the kernel has taken, and not what could have been written. By our deadline, which cancels, or by the kernel's.
    #expect(results.written < 64 << 20)
  }

  /// What fits into the kernel's buffer always leaves at once: the kernel says that nobody takes it.
  @Test func endWhereTheKernelWaitsInVainForTheirReader() async throws {
    let (results, timeouts) = try await withReaderThatReadsNothing { writer, results in
      try await writer.write([UInt8](repeating: 7, count: 100_000))
      do { try await Loop.sleep(for: .seconds(3600)) } catch { results.wasCancelled = true }
    }
    #expect(results.wasCancelled)
    #expect(timeouts == 0, "nothing waited to be written")
  }

  /// Runs a stream to its end whose reader takes nothing; how often a deadline of the server's passed.
  private func withReaderThatReadsNothing(
    _ produce: @escaping @Loop @Sendable (HTTPBodyWriter, Results) async throws -> Void
  ) async throws -> (results: Results, timeouts: UInt64) {
    let (over, results) = (Signal(), Results())
    let server = try TestServer { _ in
      HTTPResponse(
        status: 200,
        body: .endlessStream(patience: .milliseconds(50)) { writer in
          defer { over.fire() }
          try await produce(writer, results)
        })
    }
    let client = try server.connect(receiveBuffer: 4096)
    try await client.send(request)
    await over.wait()
    await server.untilDeserted()
    let timeouts = server.statistics.timeouts
    client.close()
    await server.close()
    return (results, timeouts)
  }

  @Test(arguments: [true, false])
  func endWhenTheirReaderLeaves(_ withReset: Bool) async throws {
    let script = Script()
    let server = try TestServer { _ in script.response() }
    let client = try server.connect()
    try await client.send(request)
    script.say("one")
    try await untilSaid("3\r\none\r\n", to: client)
    if withReset { client.reset() } else { client.close() }
    await script.over.wait()
    #expect(script.wasCancelled)
    await server.untilDeserted()
    #expect(server.statistics.timeouts == 0)
    await server.close()
  }

  /// The end of the peer's side came with its request, before there was a stream.
  @Test func endWhenTheirReaderHasLeftBefore() async throws {
    let (begun, goOn) = (Signal(), Signal())
    let script = Script()
    let server = try TestServer { _ in
      begun.fire()
      await goOn.wait()
      return script.response()
    }
    let client = try server.connect()
    try await client.send(request)
    client.endWriting()
    await begun.wait()
    await turn()
    goOn.fire()
    await server.untilDeserted()
    client.close()
    await server.close()
  }

  @Test func endInGoodOrderWhereTheServerDrains() async throws {
    let script = Script()
    let server = try TestServer { _ in script.response() }
    let client = try server.connect()
    try await client.send(request)
    script.say("one")
    try await untilSaid("3\r\none\r\n", to: client)
    let draining = Task { await server.server.drain(within: .seconds(600)) }
    await turn()
    // Whoever has the server drain tells the stream.
    script.say("two")
    script.end()
    #expect(try await client.readToEnd() == "3\r\ntwo\r\n0\r\n\r\n")
    await draining.value
    #expect(!script.wasCancelled)
    await server.close()
  }

  @Test func endWithoutTheirEndWhereTheServerHasNoPatience() async throws {
    let script = Script()
    let server = try TestServer { _ in script.response() }
    let client = try server.connect()
    try await client.send(request)
    script.say("one")
    try await untilSaid("3\r\none\r\n", to: client)
    await server.server.drain(within: .milliseconds(10))
    #expect(try await client.readToEnd() == "")
    #expect(script.wasCancelled)
    await server.close()
  }

  @Test func haveNoBodyForHEADAndLeaveTheConnection() async throws {
    let script = Script()
    let server = try TestServer { request in
      if request.hasMethod("HEAD") { return script.response() }
      return await echo(request)
    }
    let client = try server.connect()
    try await client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await client.answer(toHead: true).field("Transfer-Encoding") == "chunked")
    try await client.send(request)
    #expect(try await client.answer().body == "GET / - ")
    client.endWriting()
    #expect(try await client.readToEnd() == "")
    await server.close()
  }

  @Test func endWithTheConnectionInHTTP10() async throws {
    let script = Script()
    let server = try TestServer { _ in script.response() }
    let client = try server.connect()
    try await client.send("GET / HTTP/1.0\r\n\r\n")
    script.say("one")
    try await untilSaid("\r\n\r\none", to: client)
    script.say("two")
    script.end()
    #expect(try await client.readToEnd() == "two")
    await server.close()
  }

  @Loop
  private final class Results {
    var written = 0
    var wasCancelled = false
  }
}
