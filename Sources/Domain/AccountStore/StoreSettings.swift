package import Configuration
import EventLoop
import PostgreSQL

/// Which database holds the account store, and which key opens it.
package struct StoreSettings: Configurable {
  /// A database.
  package enum Database: Sendable {
    /// A file of SQLite's, for the programs of one host.
    case sqlite(path: String)
    /// A database of PostgreSQL's, as libpq names it, for the programs of many hosts; so many connections of each at most.
    case postgresql(Secret, connections: Int)
  }

  /// The database.
  package var database: Database
  /// The file with the master key.
  package var masterKeyFile: String
  /// The file with the key before it, while that one still opens something.
  package var formerMasterKeyFile: String?

  /// A database and its key.
  package init(database: Database, masterKeyFile: String, formerMasterKeyFile: String? = nil) {
    self.database = database
    (self.masterKeyFile, self.formerMasterKeyFile) = (masterKeyFile, formerMasterKeyFile)
  }

  /// Reads `store`; the key is looked at, the database is not.
  package init(reading settings: inout Settings) {
    let sqlite = settings.readIfPresent(
      "store.sqlite", .path,
      "The file of the account store, where all programs run on one host. Either this or store.postgresql.")
    let postgresql = settings.readIfPresent(
      "store.postgresql", .secret,
      "The account store for many hosts: libpq's connection string (postgresql://…). Either this or store.sqlite.")
    let connections = settings.read(
      "store.connections", .integer(1...1000), default: 8,
      "PostgreSQL alone: how many connections each program has at most. The server's max_connections bounds them all.")
    masterKeyFile = settings.read(
      "store.master-key", .file(),
      "The key that tokens and addresses are encrypted under, mode 0600: made by siwa store create-key.")
    formerMasterKeyFile = settings.readIfPresent(
      "store.former-master-key", .file(),
      "The key that store.master-key replaces, until siwa store rotate-key has wrapped everything with the new one.")
    database = .sqlite(path: sqlite ?? "")
    if let postgresql {
      database = .postgresql(postgresql, connections: connections)
      for weakness in PostgreSQLConfiguration.weaknesses(of: postgresql.revealed) {
        settings.warn("store.postgresql", weakness)
      }
    }
    if sqlite != nil && postgresql != nil {
      settings.refuse("store.postgresql", "expected only one of this and store.sqlite, found both")
    } else if sqlite == nil && postgresql == nil {
      settings.refuse("store.sqlite", "missing; expected a path here, or a connection string as store.postgresql")
    }
    let key = Self.check(masterKeyFile, "store.master-key", &settings)
    guard let formerMasterKeyFile else { return }
    let former = Self.check(formerMasterKeyFile, "store.former-master-key", &settings)
    if let key, key.id == former?.id {
      settings.refuse("store.former-master-key", "it holds the same key as store.master-key")
    }
  }

  private static func check(_ file: String, _ setting: String, _ settings: inout Settings) -> MasterKey? {
    do throws(KeyFileError) {
      return try MasterKey(file: file)
    } catch {
      settings.refuse(setting, error.description)
      return nil
    }
  }
}

extension StoreSettings {
  /// Opens the store for a program. Throws `.notMigrated` where there is none yet.
  package func open() async throws(AccountStoreError) -> any AccountStore {
    switch database {
    case .sqlite(let path): try await SQLiteAccountStore.open(path, try masterKey())
    case .postgresql(let connectionInfo, let connections):
      try await PostgreSQLAccountStore.open(connectionInfo.revealed, connections: connections, try masterKey())
    }
  }

  /// Opens the store for as long as `body` needs it.
  @Loop
  package func use<Value>(_ body: @Loop (any AccountStore) async throws -> Value) async throws -> Value {
    let store = try await open()
    let result: Result<Value, any Error>
    do { result = .success(try await body(store)) } catch { result = .failure(error) }
    await store.close()
    return try result.get()
  }

  /// What an operator does with the store, opened or not.
  package func administration() throws(AccountStoreError) -> any AccountStoreAdministration {
    switch database {
    case .sqlite(let path): SQLiteStoreAdministration(path, try masterKey())
    case .postgresql(let connectionInfo, _): PostgreSQLStoreAdministration(connectionInfo.revealed, try masterKey())
    }
  }

  func masterKey() throws(AccountStoreError) -> MasterKey {
    do throws(KeyFileError) {
      let key = try MasterKey(file: masterKeyFile)
      guard let formerMasterKeyFile else { return key }
      return key.replacing(try MasterKey(file: formerMasterKeyFile))
    } catch {
      throw AccountStoreError(.wrongMasterKey, error.description)
    }
  }
}
