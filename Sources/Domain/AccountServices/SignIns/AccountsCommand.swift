import AccountStore
package import Configuration
import EventLoop
package import Telemetry

/// `siwa-accounts`: reads the configuration, opens the store, and serves until a signal comes.
package struct AccountsCommand: ServiceCommand {
  /// The name of the program.
  package static let program = "siwa-accounts"
  /// What it does.
  package static let summary = "Signs people in for applications, keeps their tokens, and has accounts deleted."
  /// What whoever runs it has to know.
  package static let details = """
    Applications hand it what Apple gave them at a sign-in, over TLS and with a bearer token of their own, and see no
    client secret, no refresh token and no key of Apple's. Where a person asks for the deletion of their account, it is
    written into the account store, and published from there to apple.account-events.v1. docs/sign-in.md says how they ask.
    While Kafka is away, all of that goes on, and what is to be published waits in the store.

    SIGTERM or SIGINT: takes nothing new, ends streams of events, finishes what was begun, publishes what it can, ends
    with 0. A second one ends at once, with 1, and so does what takes longer than accounts.drain: whose sign-in was under
    way is told to begin again.
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

  package let options: ConfigurationOptions

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  /// Serves on the store.
  package static func serve(_ settings: AccountsConfiguration, _ logger: Logger) async throws {
    try await settings.store.use { store in
      let service = try await AccountsService(settings, store: store, registry: MetricsRegistry(), logger: logger)
      try await ServiceLife(service).run(
        draining: settings.accounts.drainDeadline, after: settings.accounts.lameDuck,
        lateness: "the time to drain is over: sign-ins under way have to begin again", logger)
    }
  }
}

extension AccountsConfiguration: ServiceConfiguration {}
