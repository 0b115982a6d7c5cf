import AccountStore
import Configuration

/// `siwa store create-key`: the key that everything in a store is encrypted under.
struct StoreCreateKey: Command {
  static let name = "store create-key"
  static let summary = "Makes a master key in a new file that only this user can read."
  static let details = """
    Tokens and addresses in the account store, and in every backup of it, are encrypted under this key, and nobody can
    read them without it: keep a copy, apart from the backups. A file that is there already stays as it is.

    Exit codes: 0 made, 1 not made, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample("siwa store create-key /etc/siwa/master-key", "Once, before the first siwa store migrate.")
  ]

  let file: String

  init(reading arguments: inout CommandArguments) {
    file = arguments.read("FILE", .path, "The new file, which store.master-key then names.")
  }

  func run() async -> ExitCode {
    do {
      try PrivateFile.write(try MasterKey.newText(), to: file)
      Terminal.say("\(try MasterKey(file: file)) is in \(file)")
      return .success
    } catch {
      Terminal.complain("siwa: \(file): \(error)")
      return .failure
    }
  }
}
