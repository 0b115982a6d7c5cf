import EventLoop
import TestSupport
import Testing

@testable import HTTPServer

/// What TLS adds: handshakes, records that come in pieces, ends with and without goodbye.
@Suite(.timeLimit(.minutes(30))) struct TLSTests {
  private let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

  @Loop
  @Test(arguments: [TLSClient.Version.tls12, .tls13])
  func answersOverTLS(_ version: TLSClient.Version) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address, protocols: ["h2", "http/1.1"], version: version)
    try await client.handshake()
    for _ in 0..<3 {
      try await client.send(request)
      #expect(try await client.answer().body == "GET /a - ")
    }
    #expect(client.chosenProtocol == "http/1.1")
    await server.close()
    #expect(try await client.readToEnd() == "")
    #expect(client.hasEnded)
  }

  /// The request comes in one packet with the end of the handshake, and is read by the same call.
  @Loop
  @Test(arguments: [TLSClient.Version.tls12, .tls13])
  func answersARequestThatComesWithTheHandshake(_ version: TLSClient.Version) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address, version: version)
    let flight = try await client.handshakeButTheLastFlight()
    try await client.raw.send(flight + client.seal(request + request))
    #expect(try await client.answer().body == "GET /a - ")
    #expect(try await client.answer().body == "GET /a - ")
    await server.close()
  }

  /// Whatever the pieces: no byte is waited for that has come. Two records are cut in two at every place; the server
  /// reads the first piece before the second is sent.
  @Loop
  @Test func readsRecordsHoweverTheyAreCut() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    let body = String(repeating: "0123456789", count: 120)
    var cut = 1
    while true {
      let first = client.seal(
        "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body.prefix(600))
      let bytes = first + client.seal(String(body.dropFirst(600)))
      guard cut < bytes.count else { break }
      try await client.raw.send(bytes[..<cut])
      await turn()
      try await client.raw.send(bytes[cut...])
      #expect(try await client.answer().body == "POST /b - \(body)")
      cut += 13
    }
    await server.close()
  }

  /// A second request comes while the first is being answered, in the same record or in another.
  @Loop
  @Test(arguments: [true, false])
  func readsWhatCameWhileAHandlerRan(_ inOneRecord: Bool) async throws {
    let certificate = try TestCertificate()
    let (begun, goOn) = (Signal(), Signal())
    let server = try TestServer(tls: certificate.configuration) { request in
      begun.fire()
      await goOn.wait()
      return await echo(request)
    }
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    let (first, second) =
      inOneRecord ? (client.seal(request + request), []) : (client.seal(request), client.seal(request))
    // What is here of the second record is read together with the first, the rest comes later.
    try await client.raw.send(first + second.prefix(10))
    await begun.wait()
    await turn()
    try await client.raw.send(second.dropFirst(10))
    await turn()
    goOn.fire()
    #expect(try await client.answer().status == 200)
    await begun.wait()
    goOn.fire()
    #expect(try await client.answer().status == 200)
    await server.close()
  }

  @Loop
  @Test func sendsALargeAnswerToASlowReader() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration) { _ in
      HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 65, count: 8 << 20)))
    }
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    try await client.send(request)
    await turn()
    #expect(try await client.answer().body.utf8.count == 8 << 20)
    await server.close()
  }

  /// One handshake a connection: the client is told no, and the connection goes on.
  @Loop
  @Test func refusesARenegotiation() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address, version: .tls12)
    try await client.handshake()
    #expect(try await client.renegotiate().contains("no renegotiation"))
    await server.close()
  }

  /// The same of a peer that has shown something good: it waits for nobody's turn, but gives its own up.
  @Loop
  @Test func aProvenPeerThatSendsNothingButNewKeysLetsTheLoopTurn() async throws {
    let (server, busy, other) = try await withTwoProven()
    let passed = server.server.turnstile.passed
    let updates = (0..<3000).flatMap { _ in busy.updateKeys() }
    let turns = Turns()
    let observer = LoopTurnObserver { _ in turns.count += 1 }
    try await busy.raw.send(updates)
    try await other.send(request)
    #expect(try await other.answer().status == 200)
    try await busy.send(request)
    #expect(try await busy.answer().status == 200)
    // A whole share without a byte of a request in it, then small ones.
    #expect(turns.count >= (updates.count - 20_000) / 2048)
    #expect(server.server.turnstile.passed == passed, "both were proven")
    withExtendedLifetime(observer) {}
    await server.close()
  }

  /// The same where each piece has a byte of a request in it: what is incomplete is read on at once, and no share ends.
  @Loop
  @Test func aProvenPeerThatSendsAByteBetweenNewKeysLetsTheLoopTurn() async throws {
    let (server, busy, other) = try await withTwoProven()
    let bytes = request.utf8.flatMap { byte in (0..<200).flatMap { _ in busy.updateKeys() } + busy.seal([byte]) }
    let turns = Turns()
    let observer = LoopTurnObserver { _ in turns.count += 1 }
    async let sent: Void = busy.raw.send(bytes)
    try await other.send(request)
    #expect(try await other.answer().status == 200)
    try await sent
    #expect(try await busy.answer().status == 200)
    #expect(turns.count >= (bytes.count - 20_000) / 2048)
    withExtendedLifetime(observer) {}
    await server.close()
  }

  /// A server, and two clients that have shown something good.
  @Loop
  private func withTwoProven() async throws -> (TestServer, TLSClient, TLSClient) {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let clients = (try TLSClient(server.server.address), try TLSClient(server.server.address))
    for client in [clients.0, clients.1] {
      try await client.handshake()
      try await client.send(request)
      #expect(try await client.answer().status == 200)
    }
    return (server, clients.0, clients.1)
  }

  @Loop
  private final class Turns {
    var count = 0
    nonisolated init() {}
  }

  /// OpenSSL reads on by itself for as long as nothing comes that is for us: here, three thousand times new keys.
  @Loop
  @Test func othersAreServedBesideAPeerThatSendsNothingButNewKeys() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let (busy, other) = (try TLSClient(server.server.address), try TLSClient(server.server.address))
    try await busy.handshake()
    try await other.handshake()
    let updates = (0..<3000).flatMap { _ in busy.updateKeys() }
    let before = server.server.turnstile.passed
    async let sent: Void = busy.raw.send(updates)
    try await other.send(request)
    #expect(try await other.answer().status == 200)
    try await sent
    try await busy.send(request)
    #expect(try await busy.answer().status == 200)
    // Not in one piece: a connection reads 16 KiB at a time.
    #expect(server.server.turnstile.passed - before >= UInt64(updates.count / 16_896))
    await server.close()
  }

  // MARK: The end

  @Loop
  @Test(arguments: [true, false])
  func saysGoodbyeOnlyAfterACompleteAnswer(_ isComplete: Bool) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration) { _ in
      HTTPResponse(
        status: 200,
        body: .stream { writer in
          try await writer.write(Array("piece".utf8))
          if !isComplete { throw CancellationError() }
        })
    }
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    // HTTP/1.0: nothing but the end says that the answer is complete.
    try await client.send("GET / HTTP/1.0\r\n\r\n")
    #expect(try await client.readToEnd().hasSuffix("\r\n\r\npiece"))
    #expect(client.hasEnded == isComplete)
    await server.close()
  }

  @Loop
  @Test(arguments: [true, false])
  func endsWhenThePeerLeaves(_ withGoodbye: Bool) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    for beginning in ["", "GET / HT"] {
      let client = try TLSClient(server.server.address)
      try await client.handshake()
      if !beginning.isEmpty { try await client.send(beginning) }
      client.raw.settle()
      await turn()
      if withGoodbye { try await client.endWriting() }
      client.raw.close()
    }
    while server.server.connectionCount > 0 { await turn() }
    #expect(server.statistics.handshakesFailed == 0)
    await server.close()
  }

  @Loop
  @Test func endsWhenThePeerBreaksTheRules() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    try await client.raw.send([23, 3, 3, 0, 20] + [UInt8](repeating: 0, count: 20))
    await #expect(throws: ClientFailure.self) { try await client.readToEnd() }
    while server.server.connectionCount > 0 { await turn() }
    await server.close()
  }

  // MARK: No handshake

  @Loop
  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
  ])
  func tellsAPeerThatSpeaksPlainHTTP(_ request: String) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try server.connect()
    try await client.send(request)
    let answer = try await client.answer()
    #expect(answer.status == 400)
    #expect(answer.body == "HTTPS is spoken on this port\n")
    #expect(try await client.readToEnd() == "")
    #expect(server.statistics.plainRequests == 1)
    await server.close()
  }

  @Loop
  @Test(arguments: [
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\u{16}\u{03}\u{01}\u{00}\u{05}hello", "\n",
  ])
  func refusesWhatIsNoTLS(_ bytes: String) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try server.connect()
    try await client.send(bytes + "and more than a record's header")
    // Either nothing or a fatal alert, and an end in good order.
    while try await client.receive() {}
    #expect(client.received.isEmpty || client.received.count == 7 && client.received[0] == 21)
    #expect(server.statistics.handshakesFailed == 1)
    await server.close()
  }

  @Loop
  @Test func answersTheBeginningOfHTTP2WithARefusalInHTTP1() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address)
    try await client.handshake()
    try await client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u{0}\u{0}\u{0}\u{4}\u{0}\u{0}\u{0}\u{0}\u{0}")
    #expect(try await client.answer().status == 505)
    #expect(try await client.readToEnd() == "")
    #expect(client.hasEnded)
    await server.close()
  }

  @Loop
  @Test func refusesAPeerThatOffersOnlyHTTP2() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try TLSClient(server.server.address, protocols: ["h2"])
    await #expect(throws: ClientFailure.self) { try await client.handshake() }
    await server.close()
  }

  @Loop
  @Test(arguments: ["", "\u{16}\u{03}\u{01}"])
  func aHandshakeThatTakesTooLongIsGivenUp(_ beginning: String) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(
      tls: certificate.configuration, deadlines: .lenient(handshake: .milliseconds(15)), handler: echo)
    let client = try server.connect()
    try await client.send(beginning)
    // What is sent once the time is over resets the connection.
    while (try? await client.receive()) == true {}
    #expect(client.received.isEmpty)
    #expect(server.statistics.handshakesTimedOut == 1)
    await server.close()
  }

  @Loop
  @Test func aDrainDoesNotWaitForHandshakes() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let client = try server.connect()
    try await client.send("\u{16}\u{03}\u{01}")
    await turn()
    await server.server.drain(within: .seconds(3600))
    #expect(try await client.readToEnd() == "")
    #expect(server.statistics.handshakesFailed == 0)
    await server.close()
  }
}
