import AccountStore
package import Configuration
import EventLoop
import Glibc
import HTTPServer
import Kafka
import Telemetry

/// `siwa-audit-log`: reads the configuration, opens the log, and serves until a signal comes.
package struct AuditLogCommand: Command {
  /// The name of the program.
  package static let program = "siwa-audit-log"
  /// The command has no name of its own.
  package static let name = ""
  /// What it does.
  package static let summary = "Keeps the audit log: every obligation, every effect and every decision of a person."
  /// What whoever runs it has to know.
  package static let details = """
    Reads the topics of events, outcomes, quarantine and dead letters without a group, appends one entry for each record
    to a transparency log (C2SP tlog-tiles) in audit-log.directory, signs a checkpoint every audit-log.interval, has
    witnesses cosign it, and serves the directory read-only at audit-log.listen. Nobody waits for it. How far it is
    follows from the entries; one process writes, a second one on the same directory stands by and takes over.

    SIGTERM or SIGINT: publishes what was read, ends with 0. A second one ends at once, with 1, and so does what takes
    longer than audit-log.drain: the next process goes on from what is on the disk.
    Exit codes: 0 ended as told, 1 failed, 2 the command line or the configuration has to change first.

    \(ConfigurationSchema.siwa.help(of: program))
    """
  /// How it is used.
  package static let examples = [
    CommandExample(program, "Serves with /etc/siwa/siwa.yaml and the variables SIWA_…."),
    CommandExample("curl http://127.0.0.1:8447/checkpoint", "The newest checkpoint."),
    CommandExample("siwa config check --program \(program)", "Says beforehand whether it would start."),
  ]

  private let options: ConfigurationOptions

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  /// Runs the program and ends the process.
  package static func main() {
    Signals.block([SIGINT, SIGTERM])
    let words = Array(CommandLine.arguments.dropFirst())
    let program = CommandLineProgram(program, AuditLogCommand.self)
    ProcessEnd.now(with: Loop.run { await program.run(words).rawValue })
  }

  /// Serves.
  package func run() async -> ExitCode { await serve() }

  @Loop
  private func serve() async -> ExitCode {
    do {
      let loaded = try ConfigurationSchema.siwa.load(
        AuditLogConfiguration.self, from: options.sources(environment: ConfigurationSources.processEnvironment))
      let logger = Logger(level: loaded.value.log.level, format: loaded.value.log.format)
      for warning in loaded.warnings { logger.warning("configuration", ["warning": .describing(warning)]) }
      let service = try await AuditLogService(loaded.value, registry: MetricsRegistry(), logger: logger)
      return try await serve(service, within: loaded.value.audit.drainDeadline, logger)
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch {
      Terminal.complain("\(Self.program): \(error)")
      return isMisuse(error) ? .misuse : .failure
    }
  }

  private func isMisuse(_ error: any Error) -> Bool {
    switch error {
    case let error as KafkaError: error.code == .invalidConfiguration
    case let error as HTTPServerError: error.code != .listen
    case let error as AccountStoreError: [.notMigrated, .newerVersion, .wrongMasterKey].contains(error.code)
    default: false
    }
  }

  /// Runs the service; the first signal drains it, the second ends the process.
  @Loop
  private func serve(
    _ service: AuditLogService, within patience: Duration, _ logger: Logger
  ) async throws -> ExitCode {
    let signals = try Signals([SIGINT, SIGTERM])
    let limit = Deadline()
    defer { limit.invalidate() }
    await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: Loop.executor) { await service.run() }
      _ = await signals.next()
      group.addTask(executorPreference: Loop.executor) {
        if await signals.next() != nil { _exit(ExitCode.failure.rawValue) }
      }
      limit.onPass {
        logger.error("the time to drain is over: the next process publishes what is not published")
        _exit(ExitCode.failure.rawValue)
      }
      limit.set(.now + patience)
      await service.drain(within: patience)
      signals.close()
      await group.waitForAll()
    }
    return .success
  }
}
