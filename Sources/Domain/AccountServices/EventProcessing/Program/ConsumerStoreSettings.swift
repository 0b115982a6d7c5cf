package import AccountStore
package import Configuration

/// Where the account store is.
package struct ConsumerStoreSettings: Configurable {
  /// The file.
  package var file: String
  /// The file of the master key.
  package var masterKey: String

  /// Reads `store`.
  package init(reading settings: inout Settings) {
    file = settings.read("store.sqlite", .path, default: "/var/lib/siwa/siwa.db", "The file of the account store.")
    masterKey = settings.read("store.master-key", .path, default: "/etc/siwa/master.key", "The file of its master key.")
  }

  /// Opens the store.
  package func open() async throws -> any AccountStore {
    try await SQLiteAccountStore.open(file, try MasterKey(file: masterKey))
  }
}
