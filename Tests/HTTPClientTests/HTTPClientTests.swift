import EventLoop
import Glibc
import HTTPClient
import Testing

/// Over plain loopback sockets, against a server that says what a test wants said.
@Loop @Suite struct HTTPClientTests {
  static let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One: 1\r\nx-one: 2\r\n\r\nhello"

  @Test func returnsTheWholeAnswer() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    let answer = try await client.send(.get(server.url("/keys?x=1"), within: .seconds(120), maximumBodySize: 5))
    #expect(answer.status == 200)
    #expect(answer.body == Array("hello".utf8))
    #expect(answer.header("x-One") == "1")
    #expect(answer.headers.map(\.name) == ["Content-Length", "X-One", "x-one"])
    #expect(
      server.requests == [
        "GET /keys?x=1 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nUser-Agent: siwa-tests/1\r\nAccept: */*\r\n\r\n"
      ])
  }

  @Test func postsTheBodyWithTheHeadersOfTheRequestAlone() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    _ = try await client.send(
      .post(
        Array("a=1".utf8), to: server.url(),
        headers: [("Content-Type", "application/x-www-form-urlencoded"), ("X-Empty", "")], within: .seconds(120),
        maximumBodySize: 5))
    _ = try await client.send(.post([], to: server.url(), headers: [], within: .seconds(120), maximumBodySize: 5))
    let common = "POST / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nUser-Agent: siwa-tests/1\r\nAccept: */*\r\n"
    #expect(
      server.requests == [
        common + "Content-Type: application/x-www-form-urlencoded\r\nX-Empty:\r\nContent-Length: 3\r\n\r\na=1",
        common + "Content-Length: 0\r\n\r\n",
      ])
  }

  @Test func sendsALargeBodyWithoutAskingFirst() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let body = [UInt8](repeating: 0x61, count: 3_000_000)
    let answer = try await HTTPClient(.testing()).send(
      .post(body, to: server.url(), headers: [], within: .seconds(120), maximumBodySize: 5))
    #expect(answer.status == 200)
    #expect(server.requests.first?.utf8.count ?? 0 > body.count)
    #expect(server.requests.first?.prefix(500).contains("Expect") == false)
  }

  @Test func keepsTheConnectionForTheNextRequest() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    for _ in 0..<5 { _ = try await client.send(.get(server.url(), within: .seconds(120), maximumBodySize: 5)) }
    #expect(server.connections == 1)
  }

  @Test func neverHoldsMoreConnectionsThanAllowed() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing(maximumConnections: 2, maximumRequests: 100))
    let requests = (0..<40).map { _ in
      Task { try await client.send(.get(server.url(), within: .seconds(120), maximumBodySize: 5)).status }
    }
    for request in requests { #expect(try await request.value == 200) }
    #expect(server.connections == 2)
  }

  @Test func followsNoRedirect() async throws {
    let server = try ScriptedServer(
      answering: "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(120), maximumBodySize: 5))
    #expect(answer.status == 302)
    #expect(answer.header("Location") == "http://127.0.0.1:1/")
    #expect(server.requests.count == 1)
  }

  @Test func leavesCompressedBodiesCompressed() async throws {
    let server = try ScriptedServer(
      answering: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\u{1f}abc")
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(120), maximumBodySize: 5))
    #expect(answer.body == Array("\u{1f}abc".utf8))
    #expect(server.requests.allSatisfy { !$0.lowercased().contains("accept-encoding") })
  }

  @Test func tellsTheAnswersHeadersFromInterimOnesAndTrailers() async throws {
    let server = try ScriptedServer(
      answering: "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n")
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(120), maximumBodySize: 5))
    #expect(answer.headers.map(\.name) == ["Transfer-Encoding"])
    #expect(answer.body == Array("hello".utf8))
  }

  @Test func ignoresTheProxyOfTheEnvironmentUnlessToldOtherwise() async {
    // In a process of its own: the environment belongs to all tests.
    await #expect(processExitsWith: .success) {
      unsafe setenv("http_proxy", "http://127.0.0.1:1", 1)
      unsafe setenv("https_proxy", "http://127.0.0.1:1", 1)
      unsafe setenv("all_proxy", "http://127.0.0.1:1", 1)
      try await HTTPClientTests.askPastADeadProxy()
    }
  }

  @Loop static func askPastADeadProxy() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    // Plain requests go to loopback, never by a proxy; TLS ones only where the configuration says so.
    for proxy in [HTTPClientConfiguration.Proxy.none, .environment] {
      let answer = try await HTTPClient(.testing(proxy: proxy)).send(
        .get(server.url(), within: .seconds(120), maximumBodySize: 5))
      try #require(answer.status == 200)
      let port = try ScriptedServer { _ in }.port
      let url = try #require(HTTPClientURL("https://127.0.0.1:\(port)/"))
      let failure = await #expect(throws: HTTPClientError.self) {
        try await HTTPClient(.testing(proxy: proxy)).send(.get(url, within: .seconds(120), maximumBodySize: 5))
      }
      try #require(failure?.code == (proxy == .none ? .tls : .connect), "\(proxy): \(String(describing: failure))")
    }
  }
}
