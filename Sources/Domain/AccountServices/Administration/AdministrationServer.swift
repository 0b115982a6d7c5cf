package import EventLoop
package import HTTPServer
package import Telemetry

/// The server of an `AdministrationEndpoint`: without TLS, and for a handful of small requests.
@Loop
package final class AdministrationServer {
  private static let limits = HTTPServerLimits(
    head: 8192, fields: 64, body: 1024, connections: 64, connectionsPerAddress: 64)
  private static let deadlines = HTTPServerDeadlines(
    handshake: .seconds(5), head: .seconds(5), body: .seconds(5), idle: .seconds(60), request: .seconds(10))

  /// Where it listens, with the real port.
  package nonisolated let address: SocketAddress
  /// How many operators are served though the process has no descriptors left.
  private static let spareDescriptors = 8

  private let server: HTTPServer
  private let loop: LoopWatch

  /// Binds the address. What every service counts is added to the registry.
  package init(
    _ address: SocketAddress, readiness: Readiness, registry: MetricsRegistry, logger: Logger
  ) throws(HTTPServerError) {
    let endpoint = AdministrationEndpoint(readiness: readiness, registry: registry)
    var configuration = HTTPServerConfiguration(
      address: address, tls: nil, limits: Self.limits, deadlines: Self.deadlines, sharesPort: false)
    configuration.spareDescriptors = Self.spareDescriptors
    server = try HTTPServer(configuration) { request in endpoint.respond(to: request) }
    self.address = server.address
    loop = LoopWatch(registry, logger)
    registry.counter("siwa_log_lines_lost_total", "Log lines that the standard error did not take.") {
      LogSink.linesLost
    }
    registry.addProcess()
    registry.gauge(
      "siwa_build_info", "Which build this is, by the SHA-256 of the program's file; always 1.",
      labels: ["sha256": Executable.digest ?? "unknown"]
    ) { 1 }
  }

  /// Serves until `end`.
  package func run() async { await server.run() }

  /// Takes no more requests.
  package func end() async { await server.drain(within: .zero) }
}
