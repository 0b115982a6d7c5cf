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

  private var key: MasterKey {
    guard let key = MasterKey([UInt8](repeating: 7, count: 32)) else { preconditionFailure("32 bytes") }
    return key
  }

  /// Replaces its hashing key, as an operator does while programs run.
  package func rotateHashKey() async throws {
    // The key below, in base64url.
    let master = directory.write("master-key", String(repeating: "BwcH", count: 10) + "Bwc")
    let settings = StoreSettings(database: .sqlite(path: path), masterKeyFile: master)
    guard let key = HashKey([UInt8](repeating: 8, count: 32)) else { preconditionFailure("32 bytes") }
    _ = try await settings.administration().rotateHashKey(to: key) { _ in }
  }

  /// Opens it; makes it the first time.
  package func open() async throws -> any AccountStore {
    if unsafe access(path, F_OK) != 0 { try await SQLiteAccountStore.begin(path, key) }
    return try await SQLiteAccountStore.open(path, key)
  }
}
