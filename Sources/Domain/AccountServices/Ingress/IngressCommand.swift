package import Configuration
import EventLoop
package import Telemetry

/// `siwa-ingress`: reads the configuration, builds the ingress, and serves until a signal comes.
package struct IngressCommand: ServiceCommand {
  /// The name of the program.
  package static let program = "siwa-ingress"
  /// What it does.
  package static let summary = "Takes Apple's notifications over TLS, verifies them, and puts what they say onto Kafka."
  /// What whoever runs it has to know.
  package static let details = """
    SIGTERM or SIGINT: takes nothing new, answers what was accepted, ends with 0. A second one ends at once, with 1.
    SIGHUP: takes a replaced certificate at once, instead of within seconds.
    Exit codes: 0 ended as told, 1 failed, 2 the command line or the configuration has to change first.

    \(ConfigurationSchema.siwa.help(of: program))
    """
  /// How it is used.
  package static let examples = [
    CommandExample("siwa-ingress", "Serves with /etc/siwa/siwa.yaml and the variables SIWA_…."),
    CommandExample("siwa-ingress --config siwa.yaml --set ingress.listen=127.0.0.1:8443", "Serves on loopback."),
    CommandExample("siwa config check --program siwa-ingress", "Says beforehand whether it would start."),
  ]

  package let options: ConfigurationOptions

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  /// Serves.
  package static func serve(_ settings: IngressConfiguration, _ logger: Logger) async throws {
    let service = try await IngressService(settings, registry: MetricsRegistry(), logger: logger)
    try await ServiceLife(service).run(draining: settings.ingress.drainDeadline, lateness: nil, logger)
  }
}

extension IngressConfiguration: ServiceConfiguration {}
