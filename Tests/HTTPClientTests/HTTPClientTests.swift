import EventLoop
import Glibc
import HTTPClient
import TestSupport
import Testing

/// Over plain loopback sockets, against a server that says what a test wants said.
@Loop @Suite struct HTTPClientTests {
  static let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One: 1\r\nx-one: 2\r\n\r\nhello"

  @Test func returnsTheWholeAnswer() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    let answer = try await client.send(.get(server.url("/keys?x=1"), within: .seconds(300), maximumBodySize: 5))
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
        headers: [("Content-Type", "application/x-www-form-urlencoded"), ("X-Empty", "")], isRepeatable: false,
        within: .seconds(300), maximumBodySize: 5))
    _ = try await client.send(
      .post([], to: server.url(), headers: [], isRepeatable: true, within: .seconds(300), maximumBodySize: 5))
    let common = "POST / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nUser-Agent: siwa-tests/1\r\nAccept: */*\r\n"
    #expect(
      server.requests == [
        common + "Content-Type: application/x-www-form-urlencoded\r\nX-Empty:\r\nContent-Length: 3\r\n\r\na=1",
        common + "Content-Length: 0\r\n\r\n",
      ])
  }

  @Test func asksForADeletionWithoutABody() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(
      .delete(
        server.url("/v1/accounts/a"), headers: [("X-One", "1")], isRepeatable: true, within: .seconds(300),
        maximumBodySize: 5))
    #expect(answer.status == 200 && answer.body == Array("hello".utf8))
    #expect(
      server.requests == [
        "DELETE /v1/accounts/a HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nUser-Agent: siwa-tests/1\r\nAccept: */*\r\n"
          + "X-One: 1\r\n\r\n"
      ])
  }

  @Test func sendsALargeBodyWithoutAskingFirst() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    // From a mebibyte on curl would ask.
    let body = [UInt8](repeating: 0x61, count: 1_100_000)
    let answer = try await HTTPClient(.testing()).send(
      .post(body, to: server.url(), headers: [], isRepeatable: true, within: .seconds(300), maximumBodySize: 5))
    #expect(answer.status == 200)
    #expect(server.requests.first?.utf8.count ?? 0 > body.count)
    #expect(server.requests.first?.prefix(500).contains("Expect") == false)
  }

  @Test func keepsTheConnectionForTheNextRequest() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    for _ in 0..<5 { _ = try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5)) }
    #expect(server.connections == 1)
  }

  /// The server answers the first request, then reads one and closes, as one does that ends meanwhile.
  @Test(arguments: [true, false], ["POST code=1", "POST ", "DELETE "])
  func sendsTwiceOnlyWhatMayHappenTwice(isRepeatable: Bool, words: String) async throws {
    var count = 0
    let server = try ScriptedServer { peer in
      while await peer.request() != nil {
        count += 1
        if count == 2 { return }
        await peer.send(Self.hello)
      }
    }
    defer { server.close() }
    let client = HTTPClient(.testing())
    _ = try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    let (method, body) = (words.prefix { $0 != " " }, words.drop { $0 != " " }.dropFirst())
    let request =
      method == "POST"
      ? HTTPClientRequest.post(
        Array(body.utf8), to: server.url(), headers: [], isRepeatable: isRepeatable, within: .seconds(300),
        maximumBodySize: 5)
      : .delete(server.url(), headers: [], isRepeatable: isRepeatable, within: .seconds(300), maximumBodySize: 5)
    if isRepeatable {
      #expect(try await client.send(request).status == 200)
    } else {
      let error = await #expect(throws: HTTPClientError.self) { try await client.send(request) }
      #expect(error?.code == .interrupted)
    }
    #expect(server.requests.count(where: { $0.hasPrefix(method) }) == (isRepeatable ? 2 : 1))
  }

  /// Over one connection, unless so much time goes by that it is not trusted any more.
  @Test func whatMustNotHappenTwiceIsSentWhole() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    let body = String(repeating: "a", count: 200_000)
    for number in 0..<3 {
      let answer = try await client.send(
        .post(
          Array("\(number)\(body)".utf8), to: server.url(), headers: [], isRepeatable: false, within: .seconds(300),
          maximumBodySize: 5))
      #expect(answer.status == 200)
    }
    #expect(server.requests.count == 3)
    #expect(server.requests.enumerated().count(where: { $1.hasSuffix("\($0)\(body)") }) == 3)
  }

  @Test func neverHoldsMoreConnectionsThanAllowed() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    defer { server.close() }
    let client = HTTPClient(.testing(maximumConnections: 2, maximumRequests: 100))
    let requests = (0..<40).map { _ in
      Task { try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5)).status }
    }
    for request in requests { #expect(try await request.value == 200) }
    #expect(server.connections == 2)
  }

  @Test func followsNoRedirect() async throws {
    let server = try ScriptedServer(
      answering: "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    #expect(answer.status == 302)
    #expect(answer.header("Location") == "http://127.0.0.1:1/")
    #expect(server.requests.count == 1)
  }

  @Test func leavesCompressedBodiesCompressed() async throws {
    let server = try ScriptedServer(
      answering: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\u{1f}abc")
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    #expect(answer.body == Array("\u{1f}abc".utf8))
    #expect(server.requests.allSatisfy { !$0.lowercased().contains("accept-encoding") })
  }

  @Test func tellsTheAnswersHeadersFromInterimOnesAndTrailers() async throws {
    let server = try ScriptedServer(
      answering: "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n")
    defer { server.close() }
    let answer = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    #expect(answer.headers.map(\.name) == ["Transfer-Encoding"])
    #expect(answer.body == Array("hello".utf8))
  }

  @Test func ignoresTheProxyOfTheEnvironmentUnlessToldOtherwise() async {
    // In a process of its own: the environment belongs to all tests.
    await #expect(processExitsWith: .success) {
      unsafe setenv("http_proxy", "http://127.0.0.1:1", 1)
      unsafe setenv("https_proxy", "http://127.0.0.1:1", 1)
      try await HTTPClientTests.askPastADeadProxy()
    }
    await #expect(processExitsWith: .success) {
      unsafe setenv("all_proxy", "http://127.0.0.1:1", 1)
      try await HTTPClientTests.askPastADeadProxy()
    }
  }

  @Loop static func askPastADeadProxy() async throws {
    let server = try ScriptedServer(answering: Self.hello)
    // One that closes at once is no TLS.
    let plain = try ScriptedServer { _ in }
    for proxy in [HTTPClientConfiguration.Proxy.none, .environment] {
      func failure(_ url: String) async throws -> HTTPClientError.Code? {
        let url = try #require(HTTPClientURL(url))
        do throws(HTTPClientError) {
          _ = try await HTTPClient(.testing(proxy: proxy)).send(.get(url, within: .seconds(300), maximumBodySize: 5))
          return nil
        } catch {
          return error.code
        }
      }
      // Loopback is asked directly: the server there says something, if no TLS.
      try #require(try await failure(server.url().text) == nil)
      for host in ["127.0.0.1", "localhost"] {
        try #require(try await failure("https://\(host):\(plain.port)/") == .tls)
      }
      // Others by the proxy, where the configuration says so: it is not there.
      try #require(try await failure(nowhere) == (proxy == .none ? .name : .connect))
    }
  }

  /// Of a name that no resolver asks anybody about: its label is longer than DNS allows.
  static let nowhere = "https://\(String(repeating: "a", count: 64)).invalid/"
}
