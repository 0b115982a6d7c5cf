package import AccountEvents
package import EventLoop
package import HTTPServer
package import Telemetry

/// The server of a program's own endpoint, beside that of its `AdministrationServer`: over HTTPS where it has a
/// certificate, which is taken anew when its files are replaced.
@Loop
package final class EndpointServer {
  /// What every endpoint allows for a request but for its own bounds.
  private static let (patience, idle) = (Duration.seconds(10), Duration.seconds(60))
  /// For the header of a proxy, and the handshake: a caller whose machine is very busy takes its time between two steps of
  /// TLS.
  private static let handshake = Duration.seconds(30)
  private static let mostFields = 64

  /// What an endpoint asks of its server.
  package struct Bounds: Sendable {
    /// How many bytes the head of a request, and its body, may have.
    let head, body: Int
    /// How many connections there may be, all in all and from one address.
    let connections, connectionsPerAddress: Int
    /// From a request's first byte to the last byte of its answer.
    let request: Duration

    /// Bounds, each of them positive; `head` and `body` in bytes.
    package init(head: Int, body: Int, connections: Int, connectionsPerAddress: Int, request: Duration) {
      (self.head, self.body, self.request) = (head, body, request)
      (self.connections, self.connectionsPerAddress) = (connections, connectionsPerAddress)
    }
  }

  /// Where it listens, with the real port.
  package nonisolated let address: SocketAddress
  private let server: HTTPServer
  private let certificate: CertificateWatch?

  /// Binds the address. Throws what is wrong with it, or with the certificate; `tls` is nil for plain HTTP. From `proxies`
  /// load balancers connect that speak the PROXY protocol. `refusal` makes what a peer is told whose request cannot be read;
  /// nil is plain text.
  package init(
    _ address: SocketAddress, tls: TLSServerConfiguration?, _ bounds: Bounds, proxies: [AddressRange] = [],
    registry: MetricsRegistry, logger: Logger, now: @escaping @Sendable () -> Timestamp,
    refusal: (@Sendable (MessageRefusal) -> HTTPResponse)? = nil,
    handler: @escaping HTTPServer.Handler
  ) throws(HTTPServerError) {
    let limits = HTTPServerLimits(
      head: bounds.head, fields: Self.mostFields, body: bounds.body, connections: bounds.connections,
      connectionsPerAddress: bounds.connectionsPerAddress)
    let deadlines = HTTPServerDeadlines(
      handshake: Self.handshake, head: Self.patience, body: Self.patience, idle: Self.idle, request: bounds.request)
    var configuration = HTTPServerConfiguration(
      address: address, tls: tls, limits: limits, deadlines: deadlines, sharesPort: false)
    configuration.proxies = proxies
    if let refusal { configuration.refusal = refusal }
    server = try HTTPServer(configuration, handler: handler)
    self.address = server.address
    if server.connectionLimit < bounds.connections {
      logger.warning("few descriptors: fewer connections", ["http.connections": .integer(server.connectionLimit)])
    }
    ServerMetrics.add(server, to: registry)
    certificate = tls == nil ? nil : CertificateWatch(server, now: now, registry: registry, logger: logger)
  }

  /// How many connections there are.
  package var connectionCount: Int { server.connectionCount }

  /// Serves until `drain` has ended.
  package func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [certificate] in await certificate?.run() }
      await server.run()
      group.cancelAll()
    }
  }

  /// Takes a certificate that was replaced, without waiting for the next look at it.
  package func renewCertificate() { certificate?.look(insisting: true) }

  /// Takes nothing new, and answers what was asked.
  package func drain(within patience: Duration) async { await server.drain(within: patience) }
}
