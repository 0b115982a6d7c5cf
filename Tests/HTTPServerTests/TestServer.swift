import EventLoop
import TestSupport

@testable import HTTPServer

/// A server on loopback, with limits and deadlines that do not matter unless a test says so.
@Loop
final class TestServer {
  let server: HTTPServer
  private let running: Task<Void, Never>

  init(
    tls: TLSServerConfiguration? = nil, limits: HTTPServerLimits = .lenient(),
    deadlines: HTTPServerDeadlines = .lenient(), sharing address: SocketAddress? = nil,
    proxies: [AddressRange] = [], spareDescriptors: Int = 0, grace: Duration = .seconds(1),
    handler: @escaping HTTPServer.Handler
  ) throws {
    var configuration = HTTPServerConfiguration(
      address: address ?? .loopback(port: 0), tls: tls, limits: limits, deadlines: deadlines,
      sharesPort: address != nil)
    (configuration.proxies, configuration.spareDescriptors) = (proxies, spareDescriptors)
    configuration.grace = grace
    let server = try HTTPServer(configuration, handler: handler)
    self.server = server
    running = Task { await server.run() }
  }

  var statistics: HTTPServerStatistics { server.statistics }

  func connect(from source: SocketAddress? = nil, receiveBuffer: CInt? = nil) throws -> RawClient {
    try RawClient(server.address, from: source, receiveBuffer: receiveBuffer)
  }

  /// Returns when every connection has ended by itself.
  func untilDeserted() async { await server.drain(within: .seconds(300)) }

  /// Ends it as if its task were cancelled, and returns when it has ended.
  func cancel() async {
    running.cancel()
    await running.value
  }

  func close() async {
    await server.drain(within: .zero)
    await running.value
  }
}

extension HTTPServerLimits {
  static func lenient(connections: Int = 100, perAddress: Int = 100) -> HTTPServerLimits {
    HTTPServerLimits(
      head: 4096, fields: 32, body: 65_536, connections: connections, connectionsPerAddress: perAddress)
  }
}

extension HTTPServerDeadlines {
  static func lenient(
    handshake: Duration = .seconds(600), head: Duration = .seconds(600), body: Duration = .seconds(600),
    idle: Duration = .seconds(600), request: Duration = .seconds(600), linger: Linger = Linger()
  ) -> HTTPServerDeadlines {
    HTTPServerDeadlines(handshake: handshake, head: head, body: body, idle: idle, request: request, linger: linger)
  }
}

extension HTTPServerDeadlines.Linger {
  static func lenient(
    silence: Duration = .seconds(600), silenceOfASender: Duration = .seconds(600), total: Duration = .seconds(600)
  ) -> Self {
    Self(silence: silence, silenceOfASender: silenceOfASender, total: total)
  }
}

/// Answers with what the request said: method, path, query and body.
@Loop
func echo(_ request: HTTPRequest) async -> HTTPResponse {
  guard await request.readBody(upTo: 65_536) == .complete else { return .text("no body", status: 400) }
  let body = request.withBody { String(decoding: $0.bytes, as: UTF8.self) }
  return .text("\(request.method) \(request.path) \(request.query ?? "-") \(body)")
}

extension RawSpan {
  /// A copy.
  var bytes: [UInt8] { (0..<byteCount).map { unsafe unsafeLoad(fromByteOffset: $0, as: UInt8.self) } }
}
