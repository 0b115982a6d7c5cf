import EventLoop
import HTTPServer
import TestSupport
import Testing

/// How a server ends, and how connections do.
@Suite(.timeLimit(.minutes(30))) struct DrainTests {
  private let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  @Loop
  @Test func closesIdleConnectionsAndListensNoMore() async throws {
    let server = try TestServer(handler: echo)
    let (fresh, used) = (try server.connect(), try server.connect())
    try await used.send(request)
    _ = try await used.answer()
    await turn()
    await server.server.drain(within: .seconds(300))
    #expect(try await fresh.readToEnd() == "")
    #expect(try await used.readToEnd() == "")
    // A program that another test starts just now holds the socket, too, until it is another program.
    while let client = try? server.connect() {
      client.close()
      await turn()
    }
    await server.close()
  }

  @Loop
  @Test func answersWhatWasBegun() async throws {
    let (begun, goOn) = (Signal(), Signal())
    let server = try TestServer { request in
      begun.fire()
      await goOn.wait()
      return await echo(request)
    }
    let (handled, half) = (try server.connect(), try server.connect())
    try await handled.send(request + request)
    await begun.wait()
    try await half.send("GET /half HTTP/1.1\r\n")
    half.settle()
    await turn()
    let draining = Task { await server.server.drain(within: .seconds(300)) }
    await turn()
    #expect(server.server.connectionCount == 2)
    goOn.fire()
    let answer = try await handled.answer()
    #expect(answer.status == 200)
    #expect(answer.field("Connection") == "close")
    #expect(try await handled.readToEnd() == "", "the second request comes too late")
    try await half.send("Host: a\r\n\r\n")
    await begun.wait()
    goOn.fire()
    #expect(try await half.answer().body == "GET /half - ")
    #expect(try await half.readToEnd() == "")
    await draining.value
    await server.close()
  }

  /// Its first bytes have arrived, but the connection's task has not looked yet.
  @Loop
  @Test(arguments: ["GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "G"])
  func answersWhatArrivedInTheSameMoment(_ beginning: String) async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    try await client.send(request)
    _ = try await client.answer()
    await turn()
    try await client.send(beginning)
    client.settle()
    let draining = Task { await server.server.drain(within: .seconds(300)) }
    await turn()
    try await client.send(String("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".dropFirst(beginning.utf8.count)))
    #expect(try await client.answer().body == "GET /a - ")
    #expect(try await client.readToEnd() == "")
    await draining.value
    await server.close()
  }

  /// Over TLS what has arrived may be part of a record only.
  @Loop
  @Test func answersWhatBeganWithPartOfARecord() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    try await client.send(request)
    #expect(try await client.answer().status == 200)
    let record = client.seal("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
    try await client.raw.send(record.prefix(20))
    client.raw.settle()
    await turn()
    let draining = Task { await server.server.drain(within: .seconds(300)) }
    await turn()
    try await client.raw.send(record.dropFirst(20))
    #expect(try await client.answer().body == "GET /a - ")
    #expect(try await client.readToEnd() == "")
    await draining.value
    await server.close()
  }

  @Loop
  @Test func losesPatienceWithPeersAndHandlers() async throws {
    let begun = Signal()
    let server = try TestServer { _ in
      begun.fire()
      await #expect(throws: CancellationError.self) { try await Loop.sleep(for: .seconds(3600)) }
      return .text("too late")
    }
    let (handled, half) = (try server.connect(), try server.connect())
    try await half.send("GET / HT")
    try await handled.send(request)
    await begun.wait()
    await server.server.drain(within: .milliseconds(10))
    #expect(server.server.connectionCount == 0)
    #expect(try await handled.readToEnd() == "")
    #expect(try await half.readToEnd() == "")
    await server.close()
  }

  @Loop
  @Test func aSecondDrainEndsTheFirst() async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    try await client.send("GET / HT")
    client.settle()
    await turn()
    let first = Task { await server.server.drain(within: .seconds(3600)) }
    await turn()
    await server.server.drain(within: .zero)
    await first.value
    #expect(try await client.readToEnd() == "")
    await server.close()
  }

  @Loop
  @Test func cancellationEndsItAtOnce() async throws {
    let begun = Signal()
    let server = try TestServer { _ in
      begun.fire()
      await #expect(throws: CancellationError.self) { try await Loop.sleep(for: .seconds(3600)) }
      return .text("too late")
    }
    let (handled, idle) = (try server.connect(), try server.connect())
    try await handled.send(request)
    await begun.wait()
    await server.cancel()
    #expect(server.server.connectionCount == 0)
    #expect(try await handled.readToEnd() == "")
    #expect(try await idle.readToEnd() == "")
  }

  @Loop
  @Test func endsThoughNobodyEverConnected() async throws {
    let server = try TestServer(handler: echo)
    await server.close()
    let other = try TestServer(handler: echo)
    await other.cancel()
  }

  // MARK: Peers that leave

  @Loop
  @Test(arguments: [true, false])
  func aHandlerRunsOnWhenItsPeerLeaves(_ withReset: Bool) async throws {
    let (begun, goOn, done) = (Signal(), Signal(), Signal())
    let server = try TestServer { _ in
      begun.fire()
      await goOn.wait()
      done.fire()
      return HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 1, count: 1 << 20)))
    }
    let client = try server.connect()
    try await client.send(request)
    await begun.wait()
    if withReset { client.reset() } else { client.close() }
    await turn()
    #expect(server.server.connectionCount == 1)
    goOn.fire()
    await done.wait()
    await server.untilDeserted()
    await server.close()
  }

  @Loop
  @Test(arguments: ["", "GET / HT", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"])
  func aConnectionEndsWhenItsPeerLeaves(_ beginning: String) async throws {
    let server = try TestServer(handler: echo)
    for withReset in [true, false] {
      let client = try server.connect()
      try await client.send(beginning)
      await turn()
      if withReset { client.reset() } else { client.close() }
    }
    while server.server.connectionCount > 0 { await turn() }
    await server.close()
  }

  /// The peer ends its side with its last request, in one piece, and still wants the answer.
  @Loop
  @Test func answersAPeerThatSendsNothingMore() async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    await turn()
    try await client.send(request)
    client.endWriting()
    #expect(try await client.answer().status == 200)
    #expect(try await client.readToEnd() == "")
    await server.close()
  }
}
