import AccountStore
import Configuration

/// `siwa store begin`: makes the account store.
struct StoreBegin: Command {
  static let name = "store begin"
  static let summary = "Makes the account store, once and for all."
  static let details = """
    Once, behind 'siwa store create-key' and before the first program that uses the store, as the user that they run as. Where
    a file lies on a volume of its own, mount that first: what is printed names the file system. In PostgreSQL the schema siwa
    is made in the database that the setting names.

    Nothing else makes a store: where its volume is not mounted, or the setting names another place by mistake, a second one
    would know nothing of the tokens, the addresses and the erasures that the first one knows, and events would be settled in
    it as if there was nothing to do. Do not let a script run this at each start: it would bring that back.

    Exit codes: 0 made; 1 not made, because there is one already, or it failed; 2 the command line or the configuration makes
    no sense; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store begin", "With /etc/siwa/siwa.yaml, which says where it is to be."),
    CommandExample(
      "siwa store begin --set store.sqlite=store.sqlite --set store.master-key=master-key", "A store to try things out."
    ),
  ]

  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode {
    await StoreAccess.run(options) { store throws(AccountStoreError) in
      guard try await store.begin() else {
        Terminal.complain(
          "siwa: \(store.place): the account store has begun there already; 'siwa store migrate' updates it")
        return .failure
      }
      Terminal.say("the account store begins: \(store.place)\(MountPoint.words(of: store.place))")
      return .success
    }
  }
}
