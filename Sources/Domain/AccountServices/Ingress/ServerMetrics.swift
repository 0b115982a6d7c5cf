import EventLoop
import HTTPServer
import Telemetry

/// What the HTTP server counts by itself, as metrics.
enum ServerMetrics {
  /// Adds the server's counts to the registry, under `siwa_http_…`; they are read when the metrics are rendered, which
  /// happens on the loop.
  static func add(_ server: HTTPServer, to registry: MetricsRegistry) {
    func counter(
      _ name: String, _ help: String, _ value: @escaping @Loop @Sendable (HTTPServerStatistics) -> UInt64
    ) {
      registry.counter("siwa_http_\(name)_total", help) { Loop.assumeIsolated { value(server.statistics) } }
    }
    registry.gauge("siwa_http_connections", "Open connections.") {
      Loop.assumeIsolated { Double(server.connectionCount) }
    }
    registry.gauge("siwa_http_connections_limit", "How many connections may be open.") {
      Double(server.connectionLimit)
    }
    counter("connections_accepted", "Connections taken from the kernel.") { $0.accepted }
    counter("connections_refused", "Connections closed because their address had too many.") { $0.refusedPerAddress }
    counter("connections_full", "Times that there were too many connections for another one.") { $0.fullTimes }
    counter("connections_shed", "Connections closed to make room: they had shown nothing good for a second or more.") {
      $0.shed
    }
    counter("accept_failures", "Times that there was no descriptor or memory for a connection.") { $0.acceptFailures }
    counter("proxy_headers_refused", "Connections of load balancers without a PROXY protocol header.") {
      $0.proxyHeadersRefused
    }
    counter("handshakes_failed", "TLS handshakes that the peer broke off or made impossible.") { $0.handshakesFailed }
    counter("handshakes_timed_out", "TLS handshakes that took too long.") { $0.handshakesTimedOut }
    counter("protocols_refused", "Peers that speak HTTP/2 or something else alone.") { $0.protocolsRefused }
    counter("plain_requests", "Peers that spoke plain HTTP to the TLS port.") { $0.plainRequests }
    counter("requests", "Requests that were well formed.") { $0.requests }
    counter("requests_malformed", "Messages refused because they were malformed or too large.") { $0.refused }
    counter("timeouts", "Heads, bodies and answers that took too long.") { $0.timeouts }
  }
}
