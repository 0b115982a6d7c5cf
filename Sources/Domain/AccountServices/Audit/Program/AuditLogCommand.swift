package import Configuration
import EventLoop
package import Telemetry

/// `siwa-audit-log`: reads the configuration, opens the log, and serves until a signal comes.
package struct AuditLogCommand: ServiceCommand {
  /// The name of the program.
  package static let program = "siwa-audit-log"
  /// What it does.
  package static let summary = "Keeps the audit log: every obligation, every effect and every decision of a person."
  /// What whoever runs it has to know.
  package static let details = """
    Reads the topics of events, outcomes, quarantine and dead letters without a group, appends one entry for each record
    to a transparency log (C2SP tlog-tiles) in audit-log.directory, signs a checkpoint every audit-log.interval, has
    witnesses cosign it, and serves the directory read-only at audit-log.listen. Nobody waits for it. How far it is
    follows from the entries; one process writes, a second one on the same directory stands by and takes over. It begins
    no log: 'siwa audit begin' does, once.

    SIGTERM or SIGINT: publishes what was read, ends with 0. A second one ends at once, with 1, and so does what takes
    longer than audit-log.drain: the next process goes on from what is on the disk.
    SIGHUP: takes a replaced certificate at once, instead of within seconds.
    Exit codes: 0 ended as told, 1 failed, 2 the command line or the configuration has to change first.

    \(ConfigurationSchema.siwa.help(of: program))
    """
  /// How it is used.
  package static let examples = [
    CommandExample(program, "Serves with /etc/siwa/siwa.yaml and the variables SIWA_…."),
    CommandExample("curl http://127.0.0.1:8447/checkpoint", "The newest checkpoint."),
    CommandExample("siwa config check --program \(program)", "Says beforehand whether it would start."),
  ]

  package let options: ConfigurationOptions

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  /// Keeps the log.
  package static func serve(_ settings: AuditLogConfiguration, _ logger: Logger) async throws {
    let service = try await AuditLogService(settings, registry: MetricsRegistry(), logger: logger)
    try await ServiceLife(service).run(
      draining: settings.audit.drainDeadline,
      lateness: "the time to drain is over: the next process publishes what is not published", logger)
  }
}

extension AuditLogConfiguration: ServiceConfiguration {}
