package import EventLoop
package import HTTPServer
package import Telemetry

/// What operators and orchestrators ask: `/livez`, `/readyz`, `/metrics`.
@Loop
package final class AdministrationEndpoint {
  private let readiness: Readiness
  private let registry: MetricsRegistry

  /// An endpoint that tells what `readiness` and `registry` hold at the moment.
  package init(readiness: Readiness, registry: MetricsRegistry) {
    self.readiness = readiness
    self.registry = registry
  }

  /// Answers one request.
  package func respond(to request: HTTPRequest) -> HTTPResponse {
    guard request.hasMethod("GET") || request.hasMethod("HEAD") else {
      return HTTPResponse(status: 405, headers: [("Allow", "GET, HEAD")])
    }
    switch request.path {
    case "/livez": return .text("alive\n")
    case "/readyz": return .text(readiness.report, status: readiness.isReady ? 200 : 503)
    case "/metrics":
      return HTTPResponse(
        status: 200, headers: [("Content-Type", MetricsRegistry.contentType)], body: .bytes(registry.render()))
    default: return .text("There are /livez, /readyz and /metrics here.\n", status: 404)
    }
  }
}
