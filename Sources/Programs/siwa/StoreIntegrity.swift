import AccountStore
import Configuration

/// `siwa store integrity`: whether all of the store can be read.
struct StoreIntegrity: Command {
  static let name = "store integrity"
  static let summary = "Reads all of the account store, and says whether it is whole."
  static let details = """
    The database checks itself, and every sealed value is opened under its key and in its place. Nothing is changed and no
    personal data is shown: accounts are named by their keyed hashes. Programs may run meanwhile.

    Exit codes: 0 whole, 1 damaged or unreadable, 2 the command line or the configuration makes no sense, 3 the store
    cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store integrity", "Now and then, and after anything strange."),
    CommandExample(
      "siwa store integrity --set store.sqlite=/backup/store.sqlite",
      "Whether a backup could be used, with today's key."
    ),
  ]

  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode {
    await StoreAccess.run(options) { store throws(AccountStoreError) in
      let report = try await store.verify(progress: StoreAccess.progress())
      for finding in report.findings { Terminal.complain("siwa: \(store.place): \(finding)") }
      Terminal.say(StoreAccess.text(report, store.place))
      return report.findings.isEmpty ? .success : .failure
    }
  }
}
