import AccountStore
package import Configuration
import EventLoop
import Glibc
import HTTPServer
import Telemetry

/// `siwa-accounts`: reads the configuration, opens the store, and serves until a signal comes.
package struct AccountsCommand: Command {
  /// The name of the program.
  package static let program = "siwa-accounts"
  /// The command has no name of its own.
  package static let name = ""
  /// What it does.
  package static let summary = "Signs people in for applications: verifies, exchanges the code, keeps the tokens."
  /// What whoever runs it has to know.
  package static let details = """
    Applications hand it what Apple gave them at a sign-in, over TLS and with a bearer token of their own, and see no
    client secret, no refresh token and no key of Apple's. docs/sign-in.md says how they ask.

    SIGTERM or SIGINT: takes nothing new, finishes what was begun, ends with 0. A second one ends at once, with 1, and so
    does what takes longer than accounts.drain: whose sign-in was under way is told to begin again.
    SIGHUP: takes a replaced certificate at once, instead of within seconds.
    Exit codes: 0 ended as told, 1 failed, 2 the command line or the configuration has to change first.

    \(ConfigurationSchema.siwa.help(of: program))
    """
  /// How it is used.
  package static let examples = [
    CommandExample(program, "Serves with /etc/siwa/siwa.yaml and the variables SIWA_…."),
    CommandExample("siwa accounts create-token", "A token for a caller, and what accounts.callers has of it."),
    CommandExample("siwa config check --program \(program)", "Says beforehand whether it would start."),
  ]

  private let options: ConfigurationOptions

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  /// Runs the program and ends the process.
  package static func main() {
    Signals.block([SIGHUP, SIGINT, SIGTERM])
    let words = Array(CommandLine.arguments.dropFirst())
    let program = CommandLineProgram(program, AccountsCommand.self)
    ProcessEnd.now(with: Loop.run { await program.run(words).rawValue })
  }

  /// Serves.
  package func run() async -> ExitCode { await serve() }

  @Loop
  private func serve() async -> ExitCode {
    do {
      let loaded = try ConfigurationSchema.siwa.load(
        AccountsConfiguration.self, from: options.sources(environment: ConfigurationSources.processEnvironment))
      let logger = Logger(level: loaded.value.log.level, format: loaded.value.log.format)
      for warning in loaded.warnings { logger.warning("configuration", ["warning": .describing(warning)]) }
      let store = try await loaded.value.store.open()
      let result: Result<ExitCode, any Error>
      do {
        let service = try await AccountsService(
          loaded.value, store: store, registry: MetricsRegistry(), logger: logger)
        result = .success(try await serve(service, within: loaded.value.accounts.drainDeadline, logger))
      } catch {
        result = .failure(error)
      }
      await store.close()
      return try result.get()
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
    case let error as HTTPServerError: error.code != .listen
    case let error as AccountStoreError: [.notMigrated, .newerVersion, .wrongMasterKey].contains(error.code)
    default: false
    }
  }

  /// Runs the service; the first signal drains it, the second ends the process.
  @Loop
  private func serve(
    _ service: AccountsService, within patience: Duration, _ logger: Logger
  ) async throws -> ExitCode {
    let signals = try Signals([SIGINT, SIGTERM])
    let renewals = try Signals([SIGHUP])
    let limit = Deadline()
    defer { limit.invalidate() }
    await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: Loop.executor) { await service.run() }
      group.addTask(executorPreference: Loop.executor) {
        while await renewals.next() != nil { await service.renewCertificate() }
      }
      _ = await signals.next()
      group.addTask(executorPreference: Loop.executor) {
        if await signals.next() != nil { _exit(ExitCode.failure.rawValue) }
      }
      limit.onPass {
        logger.error("the time to drain is over: sign-ins under way have to begin again")
        _exit(ExitCode.failure.rawValue)
      }
      limit.set(.now + patience)
      await service.drain(within: patience)
      signals.close()
      renewals.close()
      await group.waitForAll()
    }
    return .success
  }
}
