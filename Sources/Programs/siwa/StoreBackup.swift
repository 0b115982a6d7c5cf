import AccountStore
import Configuration

/// `siwa store backup`: a copy of the store.
struct StoreBackup: Command {
  static let name = "store backup"
  static let summary = "Copies the account store into a new file, and verifies the copy."
  static let details = """
    The copy is of one moment, though programs may write meanwhile; only this user can read it, and it is on the disk when
    the command ends. Until then it is called FILE.….partial, which is left where the command is killed: delete it. It
    cannot be read without the master key, which is not in it. What is erased from the store later is still in its older
    backups: keep them no longer than you may.

    A store in PostgreSQL is backed up with PostgreSQL's own means, such as pg_dump --schema=siwa: this command says so,
    and makes nothing.

    To go back to one: stop the programs, put it in the store's place without -wal and -shm files, run siwa store reconcile,
    which erases again who was erased since, and start the programs in groups of other names, which read again what the
    backup does not know: docs/account-store.md has the steps.

    Exit codes: 0 made, 1 not made, 2 the command line or the configuration makes no sense, 3 the store cannot be reached
    at the moment.

    """
  static let examples = [
    CommandExample("siwa store backup /backup/store-2027-01-01.sqlite", "Into a new file, beside the running programs.")
  ]

  let options: ConfigurationOptions
  let file: String

  init(reading arguments: inout CommandArguments) {
    file = arguments.read("FILE", .path, "The new file; one that is there already stays as it is.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await StoreAccess.run(options) { store throws(AccountStoreError) in
      do throws(StoreBackupError) {
        let report = try await store.backUp(to: file, progress: StoreAccess.progress())
        Terminal.say(StoreAccess.text(report, file))
        return .success
      } catch {
        if case .store(let error) = error { throw error }
        Terminal.complain("siwa: \(error)")
        return .failure
      }
    }
  }
}
