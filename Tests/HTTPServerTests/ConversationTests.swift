import EventLoop
import HTTPServer
import TestSupport
import Testing

/// Requests and answers on one connection, without TLS.
@Suite(.timeLimit(.minutes(30))) struct ConversationTests {
  // MARK: One request after another

  @Loop
  @Test func answersOneRequestAfterAnotherOnOneConnection() async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    for number in 1...3 {
      try await client.send("POST /\(number)?q HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
      let answer = try await client.answer()
      #expect(answer.statusLine == "HTTP/1.1 200 OK")
      #expect(answer.body == "POST /\(number) q hi")
      #expect(answer.field("Connection") == nil)
      #expect(answer.field("Content-Type") == "text/plain; charset=utf-8")
    }
    #expect(server.statistics.requests == 3)
    #expect(server.statistics.accepted == 1)
    await server.close()
    #expect(try await client.readToEnd() == "")
  }

  @Loop
  @Test(arguments: [
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "close"),
    ("GET / HTTP/1.0\r\n\r\n", "close"),
    ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive"),
  ])
  func endsOrKeepsTheConnectionAsTheRequestWants(_ request: String, _ connection: String) async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    try await client.send(request)
    #expect(try await client.answer().field("Connection") == connection)
    if connection == "close" {
      #expect(try await client.readToEnd() == "")
    } else {
      try await client.send(request)
      #expect(try await client.answer().status == 200)
    }
    await server.close()
  }

  @Loop
  @Test func answersPipelinedRequestsInTheirOrder() async throws {
    let server = try TestServer { request in
      // The first takes the longest.
      for _ in 0..<(20 - (Int(request.path.dropFirst()) ?? 0)) { await Loop.nextTurn() }
      return await echo(request)
    }
    let client = try server.connect()
    try await client.send(
      (0..<20).map { "POST /\($0) HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" }.joined())
    for number in 0..<20 { #expect(try await client.answer().body == "POST /\(number) - x") }
    await server.close()
  }

  @Loop
  @Test func letsOthersHaveTheirTurnWhileOnePeerAlwaysHasMore() async throws {
    var order: [String] = []
    let server = try TestServer { request in
      order.append(request.path)
      return HTTPResponse(status: 200)
    }
    let (greedy, modest) = (try server.connect(), try server.connect())
    await turn()
    try await greedy.send(String(repeating: "GET /g HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", count: 900))
    try await modest.send("GET /m HTTP/1.1\r\nHost: a\r\n\r\n")
    modest.settle()
    for _ in 0..<900 { _ = try await greedy.answer() }
    _ = try await modest.answer()
    let place = try #require(order.firstIndex(of: "/m"))
    #expect(place < 200, "one connection had \(place) answers before another had its first")
    await server.close()
  }

  @Loop
  @Test func readsTheAddressInAnAbsoluteTarget() async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    try await client.send("GET http://\(server.server.address)/a?b HTTP/1.1\r\nHost: \(server.server.address)\r\n\r\n")
    #expect(try await client.answer().body == "GET /a b ")
    await server.close()
  }

  @Loop
  @Test func tellsTheHandlerWhatTheRequestSaid() async throws {
    let kept = Kept()
    let server = try TestServer { request in
      kept.request = request
      #expect(request.hasMethod("POST"))
      #expect(!request.hasMethod("POS"))
      #expect(request.hasPath(Array("/a%20b".utf8)))
      #expect(!request.hasPath(Array("/a".utf8)))
      #expect(request.header("x-FIRST") == "1")
      #expect(request.header("X-None") == nil)
      #expect(request.repeatsHeader("x-first") && !request.repeatsHeader("Host") && !request.repeatsHeader("X-None"))
      #expect(request.announcedLength == 5)
      #expect(request.withBody { $0.byteCount } == 0)
      #expect(await request.readBody(upTo: 5) == .complete)
      #expect(await request.readBody(upTo: 5) == .complete)
      #expect(request.withBody { $0.bytes } == Array("hello".utf8))
      return HTTPResponse(status: 201, headers: [("X-Answer", request.peer.description)])
    }
    let client = try server.connect()
    try await client.send(
      "POST /a%20b HTTP/1.1\r\nHost: a\r\nX-First: 1\r\nX-First: 2\r\nContent-Length: 5\r\n\r\nhello")
    let answer = try await client.answer()
    #expect(answer.statusLine == "HTTP/1.1 201 Created")
    #expect(answer.field("X-Answer") == client.address.description)
    #expect(answer.field("Date")?.hasSuffix(" GMT") == true)
    #expect(answer.field("Content-Length") == "0")
    // Whoever keeps a request beyond its answer finds it empty.
    let request = try #require(kept.request)
    #expect(request.method == "" && request.header("Host") == nil && request.announcedLength == nil)
    #expect(await request.readBody(upTo: 5) == .lost)
    await server.close()
  }

  @Loop
  private final class Kept {
    var request: HTTPRequest?
    nonisolated init() {}
  }

  // MARK: Bodies and their absence

  @Loop
  @Test func sendsNoBodyWhereNoneMayBe() async throws {
    let server = try TestServer { request in
      HTTPResponse(status: Int(request.path.dropFirst()) ?? 200, body: .bytes(Array("body".utf8)))
    }
    let client = try server.connect()
    try await client.send(
      "GET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n"
        + "GET /200 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    for status in [204, 304] {
      let answer = try await client.answer()
      #expect(answer.status == status)
      #expect(answer.field("Content-Length") == nil)
    }
    #expect(try await client.answer(toHead: true).field("Content-Length") == "4")
    #expect(try await client.answer().body == "body")
    #expect(try await client.readToEnd() == "")
    await server.close()
  }

  @Loop
  @Test func keepsTheConnectionWhenAnUnreadBodyIsHereAlready() async throws {
    let server = try TestServer { _ in .text("no such thing", status: 404) }
    let client = try server.connect()
    for _ in 0..<2 {
      try await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
      #expect(try await client.answer().status == 404)
    }
    await server.close()
  }

  @Loop
  @Test func endsTheConnectionWhenAnUnreadBodyIsNotHereYet() async throws {
    let server = try TestServer { _ in HTTPResponse(status: 405, headers: [("Allow", "GET")]) }
    let client = try server.connect()
    try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    let answer = try await client.answer()
    #expect(answer.status == 405)
    #expect(answer.field("Allow") == "GET")
    #expect(answer.field("Connection") == "close")
    #expect(try await client.readToEnd() == "")
    await server.close()
  }

  // MARK: Expect: 100-continue

  private let expecting = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"

  @Loop
  @Test func tellsThePeerToGoOnOnceTheHandlerWantsTheBody() async throws {
    let wanted = Signal()
    let server = try TestServer { request in
      await wanted.wait()
      return await echo(request)
    }
    let client = try server.connect()
    try await client.send(expecting)
    await turn()
    #expect(client.received.isEmpty)
    wanted.fire()
    #expect(try await client.answer().statusLine == "HTTP/1.1 100 Continue")
    try await client.send("hello")
    let answer = try await client.answer()
    #expect(answer.body == "POST / - hello")
    #expect(answer.field("Connection") == nil)
    await server.close()
  }

  @Loop
  @Test func doesNotTellThePeerToGoOnWhenTheBodyIsHereAlready() async throws {
    let server = try TestServer(handler: echo)
    let client = try server.connect()
    try await client.send(expecting + "hello")
    #expect(try await client.answer().body == "POST / - hello")
    await server.close()
  }

  /// The peer may send the body it announced, or not: so nothing after the answer can be understood.
  @Loop
  @Test(arguments: ["", "hello", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"])
  func endsTheConnectionWhenTheHandlerDoesNotWantTheBody(_ rest: String) async throws {
    let server = try TestServer { _ in .text("no", status: 403) }
    let client = try server.connect()
    try await client.send(expecting + rest)
    let answer = try await client.answer()
    #expect(answer.status == 403)
    #expect(answer.field("Connection") == "close")
    #expect(try await client.readToEnd() == "")
    #expect(server.statistics.requests == 1)
    await server.close()
  }

  @Loop
  @Test func refusesAnExpectedBodyThatIsTooLargeWithoutAskingForIt() async throws {
    let server = try TestServer { request in
      guard case .refused(let refusal) = await request.readBody(upTo: 4) else { return .text("?") }
      return .text("\(refusal)", status: refusal.status)
    }
    let client = try server.connect()
    try await client.send(expecting)
    #expect(try await client.answer().status == 413)
    #expect(try await client.readToEnd() == "")
    await server.close()
  }
}
