import AccountStore
import Configuration

/// `siwa store migrate`: updates the store.
struct StoreMigrate: Command {
  static let name = "store migrate"
  static let summary = "Brings the account store to the version of this program."
  static let details = """
    All of it happens, or nothing; what is there already is kept. The programs never do it by themselves: they refuse to
    start with a store that is older than they need, or newer than they know. It makes no store: 'siwa store begin' does.

    Exit codes: 0 done, or there was nothing to do; 1 it failed; 2 the command line or the configuration makes no sense;
    3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store migrate", "After each update, before the programs start.")
  ]

  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode {
    await StoreAccess.run(options) { store throws(AccountStoreError) in
      let migration = try await store.migrate()
      Terminal.say(
        migration.from == migration.to
          ? "\(store.place) is of version \(migration.to) already"
          : "\(store.place) was brought from version \(migration.from) to \(migration.to)")
      return .success
    }
  }
}
