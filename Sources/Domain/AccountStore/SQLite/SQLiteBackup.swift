import EventLoop
import Glibc
import SQLite

/// A copy of a store in a new file, which has its name once it is whole.
struct SQLiteBackup {
  private let store: SQLiteStoreFile
  private let key: MasterKey
  private let path: String
  /// What it is called until then. Chance keeps two of them apart; a crash leaves it behind.
  private let partial: String

  /// A copy at `path`.
  init(of store: SQLiteStoreFile, _ key: MasterKey, to path: String) {
    (self.store, self.key, self.path) = (store, key, path)
    partial = "\(path).\(String(UInt64.random(in: .min ... .max), radix: 16)).partial"
  }

  /// Makes it, and verifies it.
  func run(_ progress: @escaping @Sendable (StoreProgress) -> Void) throws(StoreBackupError) -> StoreReport {
    guard unsafe access(path, F_OK) != 0 else { throw .file(path, "is there already") }
    defer { for end in ["", "-journal", "-wal", "-shm"] { unsafe unlink(partial + end) } }
    try copy(progress)
    let report = try verify(progress)
    // Unlike rename, it replaces nothing.
    guard unsafe link(partial, path) == 0 else { throw .file(path, "\(SystemError.current)") }
    do throws(SQLiteError) { try Database.syncDirectory(of: path) } catch { throw .file(path, error.detail) }
    return report
  }

  private func copy(_ progress: (StoreProgress) -> Void) throws(StoreBackupError) {
    do throws(SQLiteError) {
      try store.database.copy(to: partial) { progress(StoreProgress(.copying, done: $0, total: $1)) }
    } catch {
      // The store is open already, and nothing is written to it.
      let isOfTheCopy = [.cantOpen, .full, .ioError, .readOnly].contains(error.code)
      throw isOfTheCopy ? .file(path, error.detail) : .store(AccountStoreError(error))
    }
  }

  /// Opens it as any store; when it is closed, all of it is in the one file.
  private func verify(
    _ progress: @escaping @Sendable (StoreProgress) -> Void
  ) throws(StoreBackupError) -> StoreReport {
    let report: StoreReport
    do throws(AccountStoreError) { report = try SQLiteStoreFile(partial, key).verify(progress) } catch {
      throw .file(path, error.detail)
    }
    if let finding = report.findings.first {
      throw .store(AccountStoreError(.damaged, "its copy would be damaged: \(finding)"))
    }
    return report
  }
}
