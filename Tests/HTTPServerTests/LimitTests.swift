import EventLoop
import Glibc
import HTTPServer
import TestSupport
import Testing

/// What peers may send, how long they may take, and how many there may be.
@Suite(.timeLimit(.minutes(30))) struct LimitTests {
  // MARK: How much

  @Loop
  @Test(arguments: [
    Sample("GET /" + String(repeating: "x", count: 5000), 431),
    Sample("GET / HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 33), 431),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n", 413),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n", 413),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    Sample("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    Sample("hello\r\n", 400),
  ])
  func areAnsweredBeforeMoreIsRead(_ sample: Sample<Int>) async throws {
    let server = try TestServer { request in
      switch await request.readBody(upTo: .max) {
      case .complete: .text("")
      case .refused(let refusal): .text("\(refusal)", status: refusal.status)
      case .lost: .text("lost")
      }
    }
    let client = try server.connect()
    try await client.send(sample.bytes)
    let answer = try await client.answer()
    #expect(answer.status == sample.expected)
    #expect(answer.field("Connection") == "close")
    #expect(answer.body.count > 5)
    #expect(try await client.readToEnd() == "")
    #expect(server.statistics.refused == 1)
    await server.close()
  }

  /// The peer sends all of its body before it reads: closed at once, its kernel would throw our answer away.
  @Loop
  @Test func reachAPeerThatIsStillSending() async throws {
    let server = try TestServer(deadlines: .lenient(linger: .lenient())) { request in
      guard case .refused(let refusal) = await request.readBody(upTo: .max) else { return .text("?") }
      return .text("\(refusal)", status: refusal.status)
    }
    let client = try server.connect()
    try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n")
    try await client.send([UInt8](repeating: 1, count: 5_000_000))
    #expect(try await client.answer().status == 413)
    #expect(try await client.readToEnd() == "")
    await server.close()
  }

  /// A peer that has its answer and stays has no place for long: neither one that is silent nor one that goes on sending.
  @Loop
  @Test(
    arguments: [
      Sample("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", .lenient(silence: moment)),
      Sample("hello\r\n", .lenient(silenceOfASender: moment)),
      Sample("hello\r\n", .lenient(total: moment)),
    ] as [Sample<HTTPServerDeadlines.Linger>])
  func doNotKeepTheirConnectionAfterTheLastAnswer(_ sample: Sample<HTTPServerDeadlines.Linger>) async throws {
    let server = try TestServer(deadlines: .lenient(linger: sample.expected), handler: echo)
    let client = try server.connect()
    try await client.send(sample.bytes)
    #expect(try await client.answer().field("Connection") == "close")
    #expect(try await client.readToEnd() == "")
    while server.server.connectionCount > 0 {
      // Each byte begins another silence; only the whole is left then. It fails once the server has closed, which is waited for.
      if sample.expected.total == Self.moment { _ = try? await client.send("x") }
      await turn()
    }
    await server.close()
  }

  // MARK: How many

  @Loop
  @Test func furtherConnectionsWaitUntilOneEnds() async throws {
    let server = try TestServer(limits: .lenient(connections: 2), handler: echo)
    let clients = try (0..<4).map { _ in try server.connect() }
    for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    _ = try await clients[0].answer()
    _ = try await clients[1].answer()
    await turn()
    #expect(server.server.connectionCount == 2)
    #expect(server.statistics.accepted == 2)
    #expect(clients[2].received.isEmpty)
    clients[0].close()
    #expect(try await clients[2].answer().status == 200)
    clients[1].reset()
    #expect(try await clients[3].answer().status == 200)
    #expect(server.statistics.fullTimes >= 1)
    await server.close()
  }

  @Loop
  @Test func oneMoreConnectionFromOneAddressIsClosedAtOnce() async throws {
    let server = try TestServer(limits: .lenient(perAddress: 2), handler: echo)
    let clients = try (0..<2).map { _ in try server.connect() }
    for client in clients {
      try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await client.answer()
    }
    #expect(try await server.connect().readToEnd() == "")
    #expect(server.statistics.refusedPerAddress == 1)
    let elsewhere = try server.connect(from: SocketAddress("127.0.0.2:0"))
    try await elsewhere.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await elsewhere.answer().status == 200)
    // A place that was given back can be taken again.
    clients[0].close()
    while server.server.connectionCount == 3 { await turn() }
    let again = try server.connect()
    try await again.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await again.answer().status == 200)
    await server.close()
    #expect(server.server.connectionCount == 0)
  }

  // MARK: How long

  private static let moment = Duration.milliseconds(15)

  @Loop
  @Test func anIdleConnectionIsClosedWithoutAWord() async throws {
    let server = try TestServer(deadlines: .lenient(idle: Self.moment), handler: echo)
    #expect(try await server.connect().readToEnd() == "")
    // Sent with the connection, so that it is there before the time is over.
    let once = try server.connect()
    try await once.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    once.settle()
    #expect(try await once.answer().status == 200)
    #expect(try await once.readToEnd() == "")
    #expect(server.statistics.timeouts == 0)
    #expect(server.statistics.refused == 0)
    await server.close()
  }

  @Loop
  @Test(arguments: ["G", "GET / HTTP/1.1\r\nHost: a\r\n"])
  func aHeadThatTakesTooLongIsAnswered(_ beginning: String) async throws {
    let server = try TestServer(deadlines: .lenient(head: Self.moment), handler: echo)
    let client = try server.connect()
    try await client.send(beginning)
    let answer = try await client.answer()
    #expect(answer.status == 408)
    #expect(answer.field("Connection") == "close")
    #expect(try await client.readToEnd() == "")
    #expect(server.statistics.timeouts == 1)
    #expect(server.statistics.requests == 0)
    await server.close()
  }

  @Loop
  @Test func aBodyThatTakesTooLongIsToldToTheHandlerWhoCanStillAnswer() async throws {
    let server = try TestServer(deadlines: .lenient(body: Self.moment)) { request in
      guard case .refused(let refusal) = await request.readBody(upTo: 100) else { return .text("?") }
      return .text("\(refusal)", status: refusal.status)
    }
    let client = try server.connect()
    try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    let answer = try await client.answer()
    #expect(answer.status == 408)
    #expect(answer.field("Connection") == "close")
    #expect(try await client.readToEnd() == "")
    #expect(server.statistics.timeouts == 1)
    await server.close()
  }

  @Loop
  @Test func aRequestThatTakesTooLongLosesItsBody() async throws {
    let results = Results()
    let server = try TestServer(deadlines: .lenient(request: Self.moment)) { request in
      results.body = await request.readBody(upTo: 100)
      return .text("too late")
    }
    let client = try server.connect()
    try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    #expect(try await client.readToEnd() == "")
    #expect(results.body == .lost)
    #expect(server.statistics.timeouts == 1)
    await server.close()
  }

  @Loop
  @Test func aHandlerThatTakesTooLongIsCancelled() async throws {
    let results = Results()
    let server = try TestServer(deadlines: .lenient(request: Self.moment)) { _ in
      await #expect(throws: CancellationError.self) { try await Loop.sleep(for: .seconds(3600)) }
      results.wasCancelled = Task.isCancelled
      return .text("too late")
    }
    let client = try server.connect()
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await client.readToEnd() == "")
    #expect(results.wasCancelled)
    #expect(server.statistics.timeouts == 1)
    await server.close()
  }

  @Loop
  @Test func anAnswerThatNobodyReadsIsGivenUp() async throws {
    let server = try TestServer(deadlines: .lenient(request: Self.moment)) { _ in
      HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 1, count: 32 << 20)))
    }
    let client = try server.connect(receiveBuffer: 4096)
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    while server.statistics.requests == 0 { await turn() }
    await server.untilDeserted()
    #expect(server.statistics.timeouts == 1)
    client.close()
    await server.close()
  }

  @Loop
  @Test func aStreamWithoutEndIsGivenUpThoughItsReaderIsFast() async throws {
    let server = try TestServer(deadlines: .lenient(request: Self.moment)) { _ in
      HTTPResponse(status: 200, body: .stream { writer in while true { try await writer.write([1, 2, 3]) } })
    }
    let client = try server.connect()
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    while try await client.receive() { _ = client.take(client.received.count) }
    #expect(server.statistics.timeouts == 1)
    await server.close()
  }

  @Loop
  private final class Results {
    var body: HTTPRequest.BodyResult?
    var wasCancelled = false
    nonisolated init() {}
  }
}
