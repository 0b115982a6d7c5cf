import AccountStore
import Configuration

/// `siwa store migrate`: makes the store.
struct StoreMigrate: Command {
  static let name = "store migrate"
  static let summary = "Makes the account store, or brings it to the version of this program."
  static let details = """
    All of it happens, or nothing; what is there already is kept. The programs never do it by themselves: they refuse to
    start with a store that is older than they need, or newer than they know.

    Exit codes: 0 done, or there was nothing to do; 1 it failed; 2 the command line or the configuration makes no sense;
    3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store migrate", "After an installation, and after each update before the programs start."),
    CommandExample(
      "siwa store migrate --set store.sqlite=store.sqlite --set store.master-key=master-key",
      "A store to try things out."
    ),
  ]

  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode {
    await StoreAccess.run(options) { store throws(AccountStoreError) in
      let migration = try await store.migrate()
      Terminal.say(
        migration.from == migration.to
          ? "\(store.place) is of version \(migration.to) already"
          : migration.from == 0
            ? "\(store.place) was made, with version \(migration.to)"
            : "\(store.place) was brought from version \(migration.from) to \(migration.to)")
      return .success
    }
  }
}
