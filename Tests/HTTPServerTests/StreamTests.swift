import EventLoop
import HTTPServer
import TestSupport
import Testing

/// Answers that are sent piece by piece.
@Suite(.timeLimit(.minutes(30))) struct StreamTests {
  private struct Broken: Error {}

  private static func stream(_ pieces: [String], thenBreak: Bool = false) -> HTTPServer.Handler {
    { _ in
      HTTPResponse(
        status: 200, headers: [("Content-Type", "text/plain")],
        body: .stream { writer in
          for piece in pieces { try await writer.write(Array(piece.utf8)) }
          if thenBreak { throw Broken() }
        })
    }
  }

  @Loop
  @Test func goInChunksAndKeepTheConnection() async throws {
    let long = String(repeating: "0123456789", count: 1000)
    let server = try TestServer(handler: Self.stream(["one", "", "two", long]))
    let client = try server.connect()
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    let raw = try await client.read { $0.suffix(5) == Array("0\r\n\r\n".utf8) }
    let text = String(decoding: raw, as: UTF8.self)
    #expect(text.contains("\r\nTransfer-Encoding: chunked\r\n"))
    #expect(!text.contains("Content-Length"))
    #expect(text.hasSuffix("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n2710\r\n\(long)\r\n0\r\n\r\n"))
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await client.answer().body == "onetwo" + long)
    await server.close()
  }

  @Loop
  @Test(arguments: ["", "Connection: keep-alive\r\n"])
  func endWithTheConnectionInHTTP10(_ field: String) async throws {
    let server = try TestServer(handler: Self.stream(["one", "two"]))
    let client = try server.connect()
    try await client.send("GET / HTTP/1.0\r\n\(field)\r\n")
    let answer = try await client.answer()
    #expect(answer.body == "onetwo")
    #expect(answer.field("Connection") == "close")
    #expect(answer.field("Transfer-Encoding") == nil)
    await server.close()
  }

  @Loop
  @Test func haveNoBodyForHEADAndWhereNoneMayBe() async throws {
    let server = try TestServer { request in
      HTTPResponse(
        status: request.hasMethod("HEAD") ? 200 : 204, body: .stream { _ in Issue.record("asked for a body") })
    }
    let client = try server.connect()
    try await client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await client.answer(toHead: true).field("Transfer-Encoding") == "chunked")
    #expect(try await client.answer().field("Transfer-Encoding") == nil)
    try await client.send("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    #expect(try await client.answer(toHead: true).field("Connection") == "close")
    #expect(try await client.readToEnd() == "")
    await server.close()
  }

  /// An incomplete answer must not look like a complete one.
  @Loop
  @Test func endWithoutTheirEndWhenTheProducerFails() async throws {
    let server = try TestServer(handler: Self.stream(["one"], thenBreak: true))
    let client = try server.connect()
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await client.readToEnd().hasSuffix("\r\n\r\n3\r\none\r\n"))
    await server.close()
  }

  @Loop
  @Test func areAsSlowAsTheirReader() async throws {
    var written = 0
    let (blocked, lost) = (Signal(), Signal())
    let server = try TestServer { _ in
      HTTPResponse(
        status: 200,
        body: .stream { writer in
          let piece = [UInt8](repeating: 7, count: 65_536)
          do throws(HTTPBodyWriter.Lost) {
            while true {
              try await writer.write(piece)
              written += piece.count
              if written == 65_536 { blocked.fire() }
            }
          } catch {
            lost.fire()
            throw error
          }
        })
    }
    let client = try server.connect(receiveBuffer: 4096)
    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await blocked.wait()
    // As much as the kernel takes, and not more: then the writer waits.
    var last = 0
    repeat {
      last = written
      for _ in 0..<20 { await turn() }
    } while written != last
    #expect(written < 64 << 20)
    #expect(!lost.isFired)
    // Reading makes room.
    let before = written
    while written == before { try #require(try await client.receive()) }
    client.close()
    await lost.wait()
    await server.close()
  }

  @Loop
  @Test func doNotKeepTheLoopFromOthersWhileTheirReaderIsFast() async throws {
    // The reader is this test, on the same loop: it can only read when the writer lets it.
    let server = try TestServer(
      handler: Self.stream(Array(repeating: String(repeating: "x", count: 10_000), count: 3000)))
    let (reader, other) = (try server.connect(), try server.connect())
    try await reader.send("GET / HTTP/1.0\r\n\r\n")
    try await other.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try await other.answer(toHead: true).status == 200)
    var count = 0
    while try await reader.receive() { count += reader.take(reader.received.count).count }
    #expect(count > 30_000_000)
    await server.close()
  }
}
