import AccountStore
import Configuration
import EventLoop

/// `siwa store create-key`: the key that everything in a store is encrypted under.
struct StoreCreateKey: Command {
  static let name = "store create-key"
  static let summary = "Makes a master key, or a hashing key, in a new file that only this user can read."
  static let details = """
    Tokens and addresses in the account store, and in every backup of it, are encrypted under this key, and nobody can
    read them without it: keep a copy, apart from the backups. A file that is there already stays as it is. With --hashing
    the key is one for siwa store rotate-hash-key, whose help says what becomes of it.

    Exit codes: 0 made, 1 not made, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample("siwa store create-key /etc/siwa/tls/master-key", "Once, before siwa store begin."),
    CommandExample("siwa store create-key --hashing /etc/siwa/tls/hash-key-2027", "Before siwa store rotate-hash-key."),
  ]

  private let file: String
  private let isForHashing: Bool

  init(reading arguments: inout CommandArguments) {
    file = arguments.read("FILE", .path, "The new file, which store.master-key then names.")
    isForHashing = arguments.flag("--hashing", "The key is to hash accounts with; no setting names its file.")
  }

  func run() async -> ExitCode {
    do {
      try DurableFile(path: file).create(with: Array(try MasterKey.newText().utf8))
      let key = isForHashing ? try HashKey(file: file).description : try MasterKey(file: file).description
      Terminal.say("\(key) is in \(file)")
      return .success
    } catch {
      Terminal.complain("siwa: \(file): \(error)")
      return .failure
    }
  }
}
