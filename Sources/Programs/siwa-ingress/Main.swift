import AccountServices
import Configuration
import EventLoop
import Glibc
import HTTPServer
import Kafka
import Telemetry

/// The ingress: see `siwa-ingress --help`.
@main
struct SiwaIngress {
  static func main() {
    Signals.block([SIGHUP, SIGINT, SIGTERM])
    let words = Array(CommandLine.arguments.dropFirst())
    let program = CommandLineProgram("siwa-ingress", ServeCommand.self)
    ProcessEnd.now(with: Loop.run { await program.run(words).rawValue })
  }
}

/// Reads the configuration, builds the ingress, and serves until a signal comes.
struct ServeCommand: Command {
  static let name = ""
  static let summary = "Takes Apple's notifications over TLS, verifies them, and puts what they say onto Kafka."
  static let details = """
    SIGTERM or SIGINT: takes nothing new, answers what was accepted, ends with 0. A second one ends at once, with 1.
    SIGHUP: takes a replaced certificate at once, instead of within seconds.
    Exit codes: 0 ended as told, 1 failed, 2 the command line or the configuration has to change first.

    \(ConfigurationSchema.siwa.help(of: "siwa-ingress"))
    """
  static let examples = [
    CommandExample("siwa-ingress", "Serves with /etc/siwa/siwa.yaml and the variables SIWA_…."),
    CommandExample("siwa-ingress --config siwa.yaml --set ingress.listen=127.0.0.1:8443", "Serves on loopback."),
    CommandExample("siwa config check --program siwa-ingress", "Says beforehand whether it would start."),
  ]

  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode { await serve() }

  @Loop
  private func serve() async -> ExitCode {
    do {
      let loaded = try ConfigurationSchema.siwa.load(
        IngressConfiguration.self, from: options.sources(environment: ConfigurationSources.processEnvironment))
      let logger = Logger(level: loaded.value.log.level, format: loaded.value.log.format)
      for warning in loaded.warnings { logger.warning("configuration", ["warning": .describing(warning)]) }
      let ingress = try await IngressService(loaded.value, registry: MetricsRegistry(), logger: logger)
      return try await serve(ingress, loaded.value.ingress.drainDeadline)
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch let error as KafkaError where error.code == .invalidConfiguration {
      Terminal.complain("siwa-ingress: kafka: \(error.detail)")
      return .misuse
    } catch let error as HTTPServerError where error.code != .listen {
      Terminal.complain("siwa-ingress: \(error)")
      return .misuse
    } catch {
      Terminal.complain("siwa-ingress: \(error)")
      return .failure
    }
  }

  /// Runs the service; the first signal drains it, the second ends the process.
  @Loop
  private func serve(_ ingress: IngressService, _ patience: Duration) async throws -> ExitCode {
    let signals = try Signals([SIGINT, SIGTERM])
    let renewals = try Signals([SIGHUP])
    return await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: Loop.executor) { await ingress.run() }
      group.addTask(executorPreference: Loop.executor) {
        while await renewals.next() != nil { await ingress.renewCertificate() }
      }
      _ = await signals.next()
      group.addTask(executorPreference: Loop.executor) {
        if await signals.next() != nil { _exit(ExitCode.failure.rawValue) }
      }
      await ingress.drain(within: patience)
      signals.close()
      renewals.close()
      await group.waitForAll()
      return .success
    }
  }
}
