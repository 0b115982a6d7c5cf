import EventLoop
import HTTPClient
import TestSupport
import Testing

/// Every way in which there may be no answer, but for those of TLS.
@Loop @Suite struct HTTPClientFailureTests {
  private func failure(
    of request: HTTPClientRequest, _ configuration: HTTPClientConfiguration = .testing()
  ) async -> HTTPClientError.Code? {
    do throws(HTTPClientError) {
      _ = try await HTTPClient(configuration).send(request)
      return nil
    } catch {
      return error.code
    }
  }

  /// What a server says, how much of a body is allowed, and how that ends.
  struct Answer: CustomTestStringConvertible {
    let testDescription: String
    let text: String
    let limit: Int
    let code: HTTPClientError.Code?

    init(_ name: String, _ text: String, limit: Int, _ code: HTTPClientError.Code? = nil) {
      (testDescription, self.text, self.limit, self.code) = (name, text, limit, code)
    }
  }

  nonisolated static let ok = "HTTP/1.1 200 OK\r\n"
  nonisolated static let chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"
  nonisolated static let answers = [
    Answer("a body of the size allowed", ok + "Content-Length: 5\r\n\r\nhello", limit: 5),
    Answer("a body too large by its length", ok + "Content-Length: 5\r\n\r\n", limit: 4, .tooLarge),
    Answer("no body where none is allowed", ok + "Content-Length: 0\r\n\r\n", limit: 0),
    Answer("a body where none is allowed", ok + "Content-Length: 1\r\n\r\nh", limit: 0, .tooLarge),
    Answer("chunks of the size allowed", chunked + "5\r\nhello\r\n0\r\n\r\n", limit: 5),
    Answer("a chunk too large", chunked + "5\r\nhello\r\n0\r\n\r\n", limit: 4, .tooLarge),
    Answer("chunks too large together", chunked + "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", limit: 4, .tooLarge),
    Answer("a body until the close", ok + "\r\nhello", limit: 5),
    Answer("a body too large until the close", ok + "\r\nhello", limit: 4, .tooLarge),
    Answer("a body that is cut", ok + "Content-Length: 5\r\n\r\nhell", limit: 5, .interrupted),
    Answer("a chunk that is cut", chunked + "5\r\nhel", limit: 5, .interrupted),
    Answer("a chunk without a size", chunked + "x\r\nhello\r\n0\r\n\r\n", limit: 5, .interrupted),
    Answer("a length below nothing", ok + "Content-Length: -1\r\n\r\nhello", limit: 5, .malformedAnswer),
    Answer("a line too long", ok + "X: " + String(repeating: "a", count: 33_000) + "\r\n\r\n", limit: 5, .tooLarge),
    Answer("too many lines", ok + String(repeating: "X: y\r\n", count: 6000) + "\r\n", limit: 5, .tooLarge),
    Answer("interim answers for ever", String(repeating: "HTTP/1.1 103 A\r\n\r\n", count: 2000), limit: 5, .tooLarge),
    Answer("no head", "hello", limit: 5, .malformedAnswer),
    Answer("a version unheard of", "HTTP/3.7 200 OK\r\n\r\n", limit: 5, .malformedAnswer),
    Answer("nothing", "", limit: 5, .interrupted),
  ]

  @Test(arguments: answers)
  func holdsAnswersToTheirForm(answer: Answer) async throws {
    let server = try ScriptedServer { peer in
      _ = await peer.request()
      await peer.send(answer.text)
    }
    defer { server.close() }
    #expect(await failure(of: .get(server.url(), within: .seconds(300), maximumBodySize: answer.limit)) == answer.code)
  }

  @Test func givesUpWhenTheDeadlinePasses() async throws {
    let server = try ScriptedServer { peer in
      _ = await peer.request()
      await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell")
      await peer.untilClosed()
    }
    defer { server.close() }
    #expect(await failure(of: .get(server.url(), within: .milliseconds(50), maximumBodySize: 5)) == .deadline)
  }

  /// A server that answers nothing, and says when a request has arrived.
  private func silentServer() throws -> (ScriptedServer, arrived: AsyncStream<Void>) {
    let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
    let server = try ScriptedServer { peer in
      _ = await peer.request()
      arrival.finish()
      await peer.untilClosed()
    }
    return (server, arrived)
  }

  @Test func countsTheWaitForAConnectionIntoTheDeadline() async throws {
    let (server, arrived) = try silentServer()
    defer { server.close() }
    let client = HTTPClient(.testing(maximumConnections: 1))
    let first = Task { try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5)) }
    for await _ in arrived {}
    await #expect {
      try await client.send(.get(server.url(), within: .milliseconds(40), maximumBodySize: 5))
    } throws: { ($0 as? HTTPClientError)?.code == .deadline }
    #expect(server.connections == 1)
    first.cancel()
    _ = await first.result
  }

  @Test func saysThatNobodyListens() async throws {
    // A port of the system's own: a free one could be another test's by then.
    let url = try #require(HTTPClientURL("http://127.0.0.1:1/"))
    #expect(await failure(of: .get(url, within: .seconds(300), maximumBodySize: 5)) == .connect)
  }

  @Test func saysThatANameIsUnknown() async throws {
    let url = try #require(HTTPClientURL(HTTPClientTests.nowhere))
    #expect(await failure(of: .get(url, within: .seconds(300), maximumBodySize: 5)) == .name)
  }

  @Test(arguments: [
    ("", "x"), ("Na me", "x"), ("Name:", "x"), ("Name\r\n", "x"), ("N\u{e4}me", "x"), ("Name", "x\r\nY: z"),
    ("Name", "x\ny"), ("Name", "x\u{0}y"), ("Name", " x"), ("Name", "x "), ("Name", "\u{e4}"),
    ("Content-Length", "5"), ("transfer-encoding", "chunked"), ("Host", "example.com"), ("User-Agent", "other"),
    ("Accept-Encoding", "gzip"), ("Connection", "close"), ("Expect", "100-continue"),
  ])
  func sendsNoHeaderThatBreaksTheRequest(name: String, value: String) async throws {
    let server = try ScriptedServer(answering: HTTPClientTests.hello)
    defer { server.close() }
    let request = HTTPClientRequest.get(
      server.url(), headers: [(name, value)], within: .seconds(300), maximumBodySize: 5)
    #expect(await failure(of: request) == .malformedRequest)
    #expect(server.connections == 0)
  }

  @Test func endsTheTransferWhenTheTaskIsCancelled() async throws {
    let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
    let (closed, closing) = AsyncStream.makeStream(of: Void.self)
    let server = try ScriptedServer { peer in
      _ = await peer.request()
      arrival.finish()
      await peer.untilClosed()
      closing.finish()
    }
    defer { server.close() }
    let client = HTTPClient(.testing())
    let task = Task { try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5)) }
    for await _ in arrived {}
    task.cancel()
    await #expect { try await task.value } throws: { ($0 as? HTTPClientError)?.code == .cancelled }
    for await _ in closed {}  // the server saw the connection go
  }

  @Test func sendsNothingForATaskThatIsCancelledAlready() async throws {
    let server = try ScriptedServer(answering: HTTPClientTests.hello)
    defer { server.close() }
    let client = HTTPClient(.testing())
    let task = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      return try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    }
    await #expect { try await task.value } throws: { ($0 as? HTTPClientError)?.code == .cancelled }
    #expect(server.requests.isEmpty)
  }

  @Test func refusesMoreRequestsThanAllowed() async throws {
    let (server, arrived) = try silentServer()
    defer { server.close() }
    let client = HTTPClient(.testing(maximumRequests: 1))
    let first = Task { try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5)) }
    for await _ in arrived {}
    await #expect {
      try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    } throws: { ($0 as? HTTPClientError)?.code == .overloaded }
    first.cancel()
    _ = await first.result
  }

  @Test func endsEverythingWhenItIsClosed() async throws {
    let (server, arrived) = try silentServer()
    defer { server.close() }
    let client = HTTPClient(.testing())
    let first = Task { try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5)) }
    for await _ in arrived {}
    client.close()
    await #expect { try await first.value } throws: { ($0 as? HTTPClientError)?.code == .closed }
    await #expect {
      try await client.send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    } throws: { ($0 as? HTTPClientError)?.code == .closed }
  }

  @Test func closesItsConnectionsWhenNobodyHoldsItAnyLonger() async throws {
    let (closed, closing) = AsyncStream.makeStream(of: Void.self)
    let server = try ScriptedServer { peer in
      _ = await peer.request()
      await peer.send(HTTPClientTests.hello)
      await peer.untilClosed()
      closing.finish()
    }
    defer { server.close() }
    _ = try await HTTPClient(.testing()).send(.get(server.url(), within: .seconds(300), maximumBodySize: 5))
    for await _ in closed {}
  }

  @Test(arguments: HTTPClientError.Code.allCases)
  func namesEveryReasonAsMetricsWantIt(code: HTTPClientError.Code) {
    #expect(code.rawValue.utf8.allSatisfy { $0 == 0x2d || (0x61...0x7a).contains($0) })
  }
}
