import EventLoop
import TestSupport
import Testing

@testable import AccountStore

/// A database that the contract holds for.
struct Implementation: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// Makes a new, empty store.
  let prepare: @Loop @Sendable () async throws -> PreparedStore

  /// All of them: each test of the contract runs against each. Where there is no PostgreSQL, the skipped suites of its
  /// own say so.
  static let all = [sqlite] + (PostgreSQLServer.programs == nil ? [] : [postgresql])

  private static let sqlite = Implementation(testDescription: "SQLite") {
    let files = TemporaryDirectory()
    let key = try newMasterKey()
    let administration = SQLiteStoreAdministration(files.path + "/store.sqlite", key)
    _ = try await administration.migrate()
    return PreparedStore(administration) { try await SQLiteAccountStore.open(files.path + "/store.sqlite", key) }
  }

  private static let postgresql = Implementation(testDescription: "PostgreSQL") {
    let rig = try await PostgreSQLRig()
    await (try await rig.open()).close()
    return PreparedStore(rig.administration) { try await rig.open() }
  }
}

/// A store that is gone with this value.
@Loop
final class PreparedStore {
  /// Opens it once more, as another program would.
  let open: @Loop () async throws -> any AccountStore

  /// What an operator does with it.
  let administration: any AccountStoreAdministration

  init(
    _ administration: any AccountStoreAdministration, open: @escaping @Loop () async throws -> any AccountStore
  ) { (self.administration, self.open) = (administration, open) }

  /// Runs `body` with a store of its own.
  static func with<Value>(
    _ implementation: Implementation, _ body: @Loop (any AccountStore) async throws -> Value
  ) async throws -> Value {
    try await with(implementation) { store, _ in try await body(store) }
  }

  /// The same with what an operator does with it.
  static func with<Value>(
    _ implementation: Implementation,
    _ body: @Loop (any AccountStore, any AccountStoreAdministration) async throws -> Value
  ) async throws -> Value {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    let result: Result<Value, any Error>
    do { result = .success(try await body(store, prepared.administration)) } catch { result = .failure(error) }
    await store.close()
    return try result.get()
  }
}
