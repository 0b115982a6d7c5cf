import AccountStore
import Configuration

/// `siwa store rotate-key`: another master key.
struct StoreRotateKey: Command {
  static let name = "store rotate-key"
  static let summary = "Wraps with store.master-key what the key before it has wrapped."
  static let details = """
    A master key wraps the key of each account; it is replaced without anything being stopped for long, and without any
    token or address being encrypted anew:
      1. siwa store create-key makes the new one.
      2. store.master-key names the new file, and store.former-master-key the old one; all programs are restarted, and
         wrap with the new key, and open with both.
      3. siwa store rotate-key wraps anew what the old one has wrapped. Broken off, it goes on where it was. A program
         that has missed step 2 does nothing from then on, and says so.
      4. store.former-master-key is taken out again, and the programs are restarted.
    Keep the old key for as long as there are backups from before: they open with that one alone. Whoever had the old key
    and a copy of the store can still read that copy.

    Exit codes: 0 all of it is wrapped with store.master-key; 1 it is not, which is said; 2 the command line or the
    configuration makes no sense; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample(
      "siwa store rotate-key --set store.former-master-key=/etc/siwa/tls/master-key-2026",
      "Once the programs run with both keys.")
  ]

  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode {
    await StoreAccess.run(options) { store throws(AccountStoreError) in
      let rotation = try await store.rotateKey(progress: StoreAccess.progress())
      Terminal.say("\(store.place): \(rotation.accounts) accounts were wrapped anew")
      guard rotation.left > 0 else { return .success }
      Terminal.complain(
        "siwa: \(store.place): a program whose store.master-key is the former key has added \(rotation.left) "
          + "accounts meanwhile; mend its settings, restart it, and run this again")
      return .failure
    }
  }
}
