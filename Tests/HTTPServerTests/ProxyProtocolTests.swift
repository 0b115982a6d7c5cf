import EventLoop
import Foundation
import TestSupport
import Testing

@testable import HTTPServer

/// Connections that a load balancer forwards.
@Suite(.timeLimit(.minutes(30))) struct ProxyProtocolTests {
  private let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  private let header = "PROXY TCP4 203.0.113.7 192.0.2.1 12345 8443\r\n"

  /// Tells the peer whom it takes it for. Who connects from 127.0.0.1 is a load balancer.
  @Loop
  private func server(
    _ tls: TLSServerConfiguration? = nil, perAddress: Int = 100, deadlines: HTTPServerDeadlines = .lenient()
  ) throws -> TestServer {
    try TestServer(
      tls: tls, limits: .lenient(perAddress: perAddress), deadlines: deadlines,
      proxies: [try #require(AddressRange("127.0.0.1"))]
    ) { request in .text("\(request.peer)") }
  }

  @Loop
  @Test(arguments: ProxyHeaderTests.good)
  func areTakenForThoseWhomItForwards(_ header: [UInt8], _ source: String?) async throws {
    let server = try server()
    let client = try server.connect()
    try await client.send(header + Array(request.utf8))
    #expect(try await client.answer().body == source ?? "\(client.address)")
    // The header comes once: here it would be a request.
    try await client.send(header)
    #expect(try await client.answer().status >= 400)
    await server.close()
  }

  @Loop
  @Test(arguments: ProxyHeaderTests.bad)
  func endWithoutAHeader(_ header: [UInt8]) async throws {
    let server = try server()
    let client = try server.connect()
    try await client.send(header)
    // With or without a reset: bytes may be left that nobody has read.
    while (try? await client.receive()) == true {}
    #expect(client.received.isEmpty)
    #expect(server.statistics.proxyHeadersRefused == 1)
    #expect(server.statistics.requests == 0)
    await server.close()
  }

  /// In pieces of any size; what is behind the header is TLS's own.
  @Loop
  @Test(arguments: [1, 3, 16, 50, 10_000], [true, false])
  func beginWithTheHeaderAndThenTLS(_ size: Int, _ isBinary: Bool) async throws {
    let certificate = try TestCertificate()
    let server = try server(certificate.configuration)
    let header = isBinary ? ProxyHeaderTests.binary(0x21, 0x11, ProxyHeaderTests.ipv4) : Array(header.utf8)
    let client = try TLSClient(server.server.address)
    for start in stride(from: 0, to: header.count, by: size) {
      try await client.raw.send(header[start..<min(start + size, header.count)])
      await turn()
    }
    try await client.handshake()
    try await client.send(request)
    #expect(try await client.answer().body == "203.0.113.7:12345")
    try await client.send(request)
    #expect(try await client.answer().body == "203.0.113.7:12345")
    await server.close()
  }

  /// Whoever is no balancer could say to be anybody.
  @Loop
  @Test(arguments: [true, false])
  func fromElsewhereMayNotBeginWithAHeader(_ withTLS: Bool) async throws {
    let certificate = try TestCertificate()
    let server = try server(withTLS ? certificate.configuration : nil)
    let elsewhere = try server.connect(from: SocketAddress("127.0.0.2:0"))
    try await elsewhere.send(header + request)
    if withTLS {
      while (try? await elsewhere.receive()) == true {}
      #expect(server.statistics.handshakesFailed + server.statistics.plainRequests == 1)
    } else {
      #expect(try await elsewhere.answer().status == 400)
      let plain = try server.connect(from: SocketAddress("127.0.0.2:0"))
      try await plain.send(request)
      #expect(try await plain.answer().body == "\(plain.address)")
    }
    #expect(server.statistics.requests == (withTLS ? 0 : 1))
    #expect(server.statistics.proxyHeadersRefused == 0)
    await server.close()
  }

  @Loop
  @Test func countForTheAddressThatTheHeaderNames() async throws {
    let server = try server(perAddress: 2)
    func connect(_ source: String) async throws -> RawClient {
      let client = try server.connect()
      try await client.send("PROXY TCP4 \(source) 192.0.2.1 1 8443\r\n" + request)
      return client
    }
    // The balancer itself has no limit, nor what it asks for itself.
    for _ in 0..<5 {
      let own = try server.connect()
      try await own.send("PROXY UNKNOWN\r\n" + request)
      #expect(try await own.answer().status == 200)
    }
    let (first, second) = (try await connect("203.0.113.7"), try await connect("203.0.113.7"))
    #expect(try await first.answer().status == 200)
    #expect(try await second.answer().status == 200)
    let third = try await connect("203.0.113.7")
    while (try? await third.receive()) == true {}
    #expect(third.received.isEmpty)
    #expect(server.statistics.refusedPerAddress == 1)
    #expect(try await connect("203.0.113.8").answer().status == 200)
    first.close()
    while server.server.connectionCount > 2 { await turn() }
    #expect(try await connect("203.0.113.7").answer().status == 200, "a place that was given back")
    await server.close()
  }

  @Loop
  @Test(arguments: ["", "PROXY TCP4 203.0.113.7 ", "\r\n\r\n"])
  func haveTheTimeOfAHandshakeForTheHeader(_ beginning: String) async throws {
    let server = try server(deadlines: .lenient(handshake: .milliseconds(15)))
    let client = try server.connect()
    try await client.send(beginning)
    while (try? await client.receive()) == true {}
    #expect(client.received.isEmpty)
    #expect(server.statistics.handshakesTimedOut == 1)
    #expect(server.statistics.proxyHeadersRefused == 0)
    await server.close()
  }

  /// Looks whether somebody listens, or lives, are no faults of anybody's.
  @Loop
  @Test(arguments: ["", "PROXY UNKNOWN\r\n", "PROXY TCP4 203.0.113.7", "PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n"])
  func ofABalancerThatOnlyLooksCountAsNothing(_ beginning: String) async throws {
    let certificate = try TestCertificate()
    let server = try server(certificate.configuration)
    let client = try server.connect()
    try await client.send(beginning)
    await turn()
    client.endWriting()
    while (try? await client.receive()) == true {}
    while server.server.connectionCount > 0 { await turn() }
    var expected = HTTPServerStatistics()
    expected.accepted = 1
    #expect(server.statistics == expected)
    await server.close()
  }

  // MARK: Other people's

  @Loop
  @Test func curlForwards() async throws {
    let certificate = try TestCertificate()
    let server = try server(certificate.configuration)
    let (end, output, errors) = try await RunningProgram.finish(
      path: "curl",
      // From a port that neither the system gives nor a broker or database of the tests has reserved.
      ["--silent", "--show-error", "--haproxy-protocol", "--cacert", certificate.configuration.certificateFile]
        + ["--local-port", "32000-32767", "https://localhost:\(server.server.address.port)/"])
    #expect(end == .exit(0), "\(errors)")
    #expect(output.hasPrefix("127.0.0.1:32"), "\(output)")
    await server.close()
  }

  private static let haproxy = "/usr/sbin/haproxy"

  @Loop
  @Test(
    .enabled("where HAProxy is installed") { FileManager.default.isExecutableFile(atPath: haproxy) },
    arguments: ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options unique-id,crc32c"])
  func haproxyForwards(_ options: String) async throws {
    let certificate = try TestCertificate()
    let server = try server(certificate.configuration)
    let address = try SocketAddress.free()
    let configuration = certificate.directory.write(
      "haproxy.cfg",
      """
      defaults
        mode tcp
        timeout connect 60s
        timeout client 60s
        timeout server 60s
      frontend in
        bind \(address)
        unique-id-format %{+X}o\\ %ci:%cp
        default_backend out
      backend out
        server siwa \(server.server.address) \(options) check check-send-proxy inter 2s

      """)
    try await RunningProgram.run(path: Self.haproxy, ["-db", "-f", configuration]) { program in
      // It is checked by header: once it was, and is taken for alive, it is served.
      while server.statistics.accepted < 2 {
        try #require(!program.hasEnded, "\(program.errors)")
        await turn()
      }
      for host in ["127.0.0.9:0", "127.0.0.10:0"] {
        let client = try TLSClient(address, from: SocketAddress(host))
        try await client.handshake()
        try await client.send(request)
        #expect(try await client.answer().body == "\(client.raw.address)")
      }
      #expect(server.statistics.proxyHeadersRefused == 0)
      #expect(server.statistics.handshakesFailed == 0)
    }
    await server.close()
  }
}
