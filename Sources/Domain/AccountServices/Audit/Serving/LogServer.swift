import AccountEvents
package import EventLoop
package import HTTPServer
package import Telemetry

/// The server of a log, for who verifies it.
@Loop
package final class LogServer {
  private static let limits = HTTPServerLimits(
    head: 8192, fields: 64, body: 1024, connections: 256, connectionsPerAddress: 64)
  private static let deadlines = HTTPServerDeadlines(
    handshake: .seconds(10), head: .seconds(10), body: .seconds(10), idle: .seconds(60), request: .seconds(60))

  /// Where it listens, with the real port.
  package nonisolated let address: SocketAddress
  private let server: HTTPServer
  private let certificate: CertificateWatch?

  /// Binds the address.
  package init(
    _ settings: AuditLogSettings, _ endpoint: LogEndpoint, registry: MetricsRegistry, logger: Logger
  ) throws(HTTPServerError) {
    server = try HTTPServer(
      HTTPServerConfiguration(
        address: settings.listen, tls: settings.tls, limits: Self.limits, deadlines: Self.deadlines, sharesPort: false)
    ) { request in await endpoint.respond(to: request) }
    address = server.address
    certificate =
      settings.tls == nil
      ? nil : CertificateWatch(server, now: { Timestamp.now }, registry: registry, logger: logger)
  }

  /// Serves until `drain` has ended.
  package func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [certificate] in await certificate?.run() }
      await server.run()
      group.cancelAll()
    }
  }

  /// Takes nothing new, and answers what was asked.
  package func drain(within patience: Duration) async { await server.drain(within: patience) }
}
