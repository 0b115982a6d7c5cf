import AccountStore
import Configuration

/// `siwa store rotate-hash-key`: another key for the hashes of accounts.
struct StoreRotateHashKey: Command {
  static let name = "store rotate-hash-key"
  static let summary = "Replaces the key that accounts are hashed with, while programs run."
  static let details = """
    Accounts stand in the store, in outcomes and in logs as keyed hashes. Whoever has the hashing key can compute the hash
    of a person they can name, and look for it there. This replaces the key:
      1. Where the master key may be known to somebody, replace it first (siwa store rotate-key): it opens the hashing keys
         that the store keeps.
      2. siwa store create-key --hashing FILE makes the new key. Keep a copy beside the master key.
      3. siwa store rotate-hash-key FILE adds it to the store, wrapped by the master key, and moves all that is known of each
         account to its hash under the new key: also what keeps an erased account erased, of which the hash is all that is
         left. Broken off, it goes on where it was. Programs run on and find out by themselves.
      4. Make a backup. One from before opens as ever, but does not know the new key: after its restore run this command
         again with the same FILE, and then siwa store reconcile. Destroy FILE when no such backup is left.
    Where there was more than one rotation since such a backup, each is repeated with its file, in the order of that time,
    and no other comes between: a hash is made with all keys up to its own. A store that has rotated otherwise never comes
    to those hashes: restore the backup anew.
    The new hash is made from the old one, so the store keeps all its hashing keys. Outcomes on Kafka, audit logs and logs
    from before keep the old hashes; from then on outcomes name the new key and those before it together (account_key), as
    this command says at its end, and are keyed by the new hash:
    an account's outcomes from before and after may be in different partitions.

    Exit codes: 0 all of the store bears hashes under the new key; 1 it does not, which is said; 2 the command line, the
    configuration or FILE makes no sense; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store create-key --hashing /etc/siwa/tls/hash-key-2027", "Makes the new key."),
    CommandExample(
      "siwa store rotate-hash-key /etc/siwa/tls/hash-key-2027", "Once a year, or when the key may be known."),
    CommandExample("siwa store rotate-hash-key", "Goes on with a rotation whose file is gone."),
  ]

  private let file: String?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    file = arguments.readIfPresent(
      "FILE", .path, "The new key, mode 0600. Left out, a rotation that was begun is brought to its end.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    var key: HashKey?
    if let file {
      do throws(KeyFileError) {
        key = try HashKey(file: file)
      } catch {
        Terminal.complain("siwa: \(error)")
        return .misuse
      }
    }
    return await StoreAccess.run(options) { [key] store throws(AccountStoreError) in
      let rotation = try await store.rotateHashKey(to: key, progress: StoreAccess.progress())
      Terminal.say(
        "\(store.place): all accounts are hashed with hashing key \(rotation.key); \(rotation.rows) rows moved")
      if let name = rotation.name { Terminal.say("Outcomes name it, and the keys before it, as account_key \(name).") }
      if rotation.rows > 0 {
        Terminal.say("Make a backup now, and keep the key's file for as long as there are older ones.")
      }
      return .success
    }
  }
}
