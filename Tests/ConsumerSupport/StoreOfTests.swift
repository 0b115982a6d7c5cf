package import AccountStore
package import EventLoop
import Glibc
import TestSupport

/// An account store in a file that is gone at the end of its test.
@Loop
package final class StoreOfTests {
  private let directory = TemporaryDirectory()

  package nonisolated init() {}

  /// Where the file is.
  package var path: String { "\(directory.path)/siwa.db" }

  /// Opens it; makes it the first time.
  package func open() async throws -> any AccountStore {
    guard let key = MasterKey([UInt8](repeating: 7, count: 32)) else { preconditionFailure("32 bytes") }
    if unsafe access(path, F_OK) != 0 { _ = try await SQLiteAccountStore.migrate(path, key) }
    return try await SQLiteAccountStore.open(path, key)
  }
}
