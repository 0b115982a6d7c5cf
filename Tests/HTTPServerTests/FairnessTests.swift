import EventLoop
import Glibc
import TestSupport
import Testing

@testable import HTTPServer

/// Who behaves is served beside who does not: by counting turns and pieces of work, not by a clock.
@Suite(.serialized, .timeLimit(.minutes(30))) struct FairnessTests {
  private let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
  private let refused = "GET /refused HTTP/1.1\r\nHost: a\r\n\r\n"

  /// Answers `echo`, and refuses one path as the ingress refuses what is forged.
  @Loop
  private func server(
    tls: TLSServerConfiguration? = nil, connections: Int = 1000, perAddress: Int = 1000, _ log: Log = Log()
  ) throws -> TestServer {
    try TestServer(tls: tls, limits: .lenient(connections: connections, perAddress: perAddress)) { request in
      log.note(request.peer)
      return request.path == "/refused" ? .text("no", status: 400) : await echo(request)
    }
  }

  /// In which order requests reached the handler.
  @Loop
  private final class Log {
    private(set) var peers: [SocketAddress] = []
    /// Called with each request.
    var onNote: @Loop () -> Void = {}
    nonisolated init() {}
    func note(_ peer: SocketAddress) {
      peers.append(peer)
      onNote()
    }
  }

  /// The bytes of a client's first flight.
  @Loop
  private func hello(_ server: TestServer) async throws -> [UInt8] {
    try TLSClient(server.server.address).firstFlight()
  }

  @Loop
  @Test func aProvenConnectionWaitsForOneHandshakeAndNotForThoseOfAFlood() async throws {
    let certificate = try TestCertificate()
    let log = Log()
    let server = try server(tls: certificate.configuration, log)
    let proven = try TLSClient(server.server.address)
    try await proven.handshake()
    try await proven.send(request)
    #expect(try await proven.answer().status == 200)
    // How many had their turn when the last request was served.
    var served: UInt64 = 0
    log.onNote = { served = server.server.turnstile.passed }
    let flood = try (0..<100).map { _ in try server.connect() }
    while server.server.connectionCount < 101 { await turn() }
    let flights = try await hello(server)
    let before = server.server.turnstile.passed
    // All at once: a turn for each would let one through for each.
    for client in flood { try client.sendAtOnce(flights) }
    for client in flood { client.settle() }
    for count in 1...4 {
      let asked = server.server.turnstile.passed
      try await proven.send(request)
      proven.raw.settle()
      #expect(try await proven.answer().status == 200)
      // Once the request is reported it is served before the next handshake. A dozen turns are the test's own way.
      #expect(served - asked < 20, "\(count)")
    }
    #expect(served - before <= 80, "or there was no flood any more")
    // And the flood is not starved: all of it gets its turn, however late the kernel delivers it.
    while server.server.turnstile.passed - before < 100 { await turn() }
    await server.close()
  }

  @Loop
  @Test func whoSendsRefusedRequestsComesAfterWhoSendsGoodOnes() async throws {
    let log = Log()
    let server = try server(log)
    let proven = try server.connect()
    try await proven.send(request)
    #expect(try await proven.answer().status == 200)
    let forgers = try (0..<50).map { _ in try server.connect() }
    for client in forgers { try await client.send(String(repeating: refused, count: 100)) }
    for _ in 1...20 {
      let before = log.peers.count
      try await proven.send(request)
      proven.settle()
      #expect(try await proven.answer().status == 200)
      let position = try #require(log.peers[before...].firstIndex(of: proven.address)) - before
      #expect(position < 20, "of 50 connections that have 100 requests each")
    }
    await server.close()
  }

  /// A forger that sends a good request is proven by it, and one that was proven loses that.
  @Loop
  @Test func theLastAnswerDecides() async throws {
    let server = try server()
    let client = try server.connect()
    let requests = [
      (request, true), (request, false), (refused, false), (refused, true), (request, true), (request, false),
    ]
    for (text, asks) in requests {
      let before = server.server.turnstile.passed
      try await client.send(text)
      _ = try await client.answer()
      #expect((server.server.turnstile.passed > before) == asks)
    }
    await server.close()
  }

  /// Each address in its turn: one new connection from elsewhere does not wait for the hundred of a flood.
  @Loop
  @Test func aNewcomerFromElsewhereWaitsForOneOfAFloodAndNotForAllOfIt() async throws {
    let log = Log()
    let server = try server(log)
    let flood = try (0..<100).map { _ in try server.connect() }
    for client in flood { try await client.send(String(repeating: refused, count: 100)) }
    while server.server.connectionCount < 100 { await turn() }
    let newcomer = try server.connect(from: SocketAddress("127.0.0.9:0"))
    let before = log.peers.count
    try await newcomer.send(request)
    newcomer.settle()
    #expect(try await newcomer.answer().status == 200)
    let position = try #require(log.peers[before...].firstIndex(of: newcomer.address)) - before
    // Its accept and the test's own way take some turns; a hundred of the flood stand in line.
    #expect(position < 50)
    await server.close()
  }

  /// What slowhttptest does, all of it at once: slow heads, slow bodies, slow readers; and floods of fields and chunks.
  @Loop
  @Test func aProvenConnectionIsServedBesideEverythingAtOnce() async throws {
    let log = Log()
    let server = try server(log)
    let proven = try server.connect()
    try await proven.send(request)
    #expect(try await proven.answer().status == 200)
    let post = "POST /a HTTP/1.1\r\nHost: a\r\n"
    let slow = ["GET / HT", post + "X: ", post + "Content-Length: 60000\r\n\r\nslow"]
    let floods = [
      post + "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: "1\r\nx\r\n", count: 10_000),
      post + String(repeating: "X: y\r\n", count: 1000), String(repeating: refused, count: 100),
    ]
    var clients: [RawClient] = []
    for text in slow + floods {
      for _ in 0..<20 {
        let client = try server.connect(receiveBuffer: 4096)
        try await client.send(text)
        clients.append(client)
      }
    }
    // How many had their turn when the last request was served.
    var served: UInt64 = 0
    log.onNote = { served = server.server.turnstile.passed }
    for count in 1...20 {
      let before = server.server.turnstile.passed
      try await proven.send(request)
      proven.settle()
      #expect(try await proven.answer().status == 200)
      // A dozen turns are the test's own way: its task gives way at each step.
      #expect(served - before < 20, "\(count)")
      for client in clients[..<60] { try await client.send("x") }
    }
    await server.close()
  }

  // MARK: Too many

  /// Slow peers hold every place; one that has something to say gets in, and those that have spoken well stay.
  @Loop
  @Test func whoHasShownNothingMakesRoom() async throws {
    let server = try server(connections: 10)
    let proven = try (0..<2).map { _ in try server.connect() }
    for client in proven {
      try await client.send(request)
      #expect(try await client.answer().status == 200)
    }
    let slow = try (0..<8).map { _ in try server.connect() }
    for client in slow { try await client.send("GET / HT") }
    while server.server.connectionCount < 10 { await turn() }
    let newcomer = try server.connect()
    try await newcomer.send(request)
    #expect(try await newcomer.answer().status == 200)
    #expect(server.statistics.shed == 1)
    #expect(server.server.connectionCount == 10)
    #expect(try await slow[0].readToEnd() == "", "the one that was there for longest")
    for client in proven + [newcomer] {
      try await client.send(request)
      #expect(try await client.answer().status == 200)
    }
    #expect(server.statistics.shed == 1)
    await server.close()
  }

  /// What a peer has sent counts, though the loop stood still until its time was over.
  @Loop
  @Test func nobodyMakesRoomForWhatTheLoopHasNotRead() async throws {
    let server = try server(connections: 8)
    let clients = try (0..<8).map { _ in try server.connect() }
    while server.server.connectionCount < 8 { await turn() }
    let newcomer = try server.connect()
    while server.statistics.fullTimes == 0 { await Loop.nextTurn() }
    if server.statistics.shed > 0 {
      // The machine stood still before anybody had said anything: once more.
      await server.close()
      return try await nobodyMakesRoomForWhatTheLoopHasNotRead()
    }
    for client in clients + [newcomer] { try client.sendAtOnce(Array(request.utf8)) }
    // One of them has had its turn, and the others wait for theirs.
    while server.server.turnstile.passed == 0 { await Loop.nextTurn() }
    let held = MonotonicTime.now
    while MonotonicTime.now < held + .milliseconds(1100) {}
    for client in clients { #expect(try await client.answer().status == 200) }
    #expect(server.statistics.shed == 0)
    clients[0].close()
    #expect(try await newcomer.answer().status == 200)
    await server.close()
  }

  /// A request that is being answered may be a good one.
  @Loop
  @Test func whoIsBeingAnsweredStays() async throws {
    let (begun, goOn) = (Signal(), Signal())
    let server = try TestServer(limits: .lenient(connections: 2)) { request in
      begun.fire()
      await goOn.wait()
      return await echo(request)
    }
    let first = try server.connect()
    try await first.send(request)
    await begun.wait()
    let slow = try server.connect()
    while server.server.connectionCount < 2 { await turn() }
    let newcomer = try server.connect()
    try await newcomer.send(request)
    await begun.wait()
    #expect(try await slow.readToEnd() == "")
    goOn.fire()
    goOn.fire()
    #expect(try await first.answer().status == 200)
    #expect(try await newcomer.answer().status == 200)
    #expect(server.statistics.shed == 1)
    await server.close()
  }

  // MARK: What a flood leaves behind

  @Loop
  @Test func aFloodLeavesNeitherDescriptorsNorPlaces() async throws {
    let certificate = try TestCertificate()
    let server = try server(tls: certificate.configuration, connections: 50)
    let hello = try await hello(server)
    for round in 0..<4 {
      let flood = try (0..<40).map { _ in try server.connect() }
      for (index, client) in flood.enumerated() {
        switch (index + round) % 4 {
        case 0: try await client.send(hello)
        case 1: try await client.send(hello.prefix(100))
        case 2: try await client.send("GET / HTTP/1.1\r\n\r\n")
        default: break
        }
      }
      #expect(server.server.connectionCount <= 50)
      for (index, client) in flood.enumerated() { if index % 2 == 0 { client.reset() } else { client.close() } }
      while server.server.connectionCount > 0 { await turn() }
    }
    await server.close()
  }
}
