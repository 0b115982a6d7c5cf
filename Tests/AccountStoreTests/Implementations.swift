import EventLoop
import TestSupport
import Testing

@testable import AccountStore

/// A database that the contract holds for.
struct Implementation: Sendable, CustomTestStringConvertible {
  let testDescription: String
  private let make: @Loop @Sendable (_ hashKey: [UInt8]?) async throws -> PreparedStore

  /// Makes a new, empty store; its hashes have a key of its own where `hashKey` is nil.
  @Loop
  func prepare(hashKey: [UInt8]? = Sample.hashKey) async throws -> PreparedStore { try await make(hashKey) }

  /// All of them: each test of the contract runs against each. Where there is no PostgreSQL, the skipped suites of its
  /// own say so.
  static let all = [sqlite] + (PostgreSQLServer.programs == nil ? [] : [postgresql])

  private static let sqlite = Implementation(testDescription: "SQLite") { hashKey in
    let rig = try SQLiteRig(hashKey: hashKey)
    await (try await rig.open()).close()
    return PreparedStore(rig.administration) {
      try await rig.open()
    } breakKeys: {
      try rig.execute("UPDATE account SET data_key = randomblob(60)")
    } changeHashKeys: { change in
      let statement: StaticString =
        switch change {
        case .completed: "UPDATE hash_key SET is_complete = 1"
        case .withoutSecond: "DELETE FROM hash_key WHERE number = 2"
        }
      try rig.execute(statement)
    } run: { statement, _ in
      try rig.execute(statement)
    } rotate: { page in
      let rotation = try SQLiteHashRotation(try SQLiteStoreFile(rig.path, rig.key), page: page)
      return SteppedRotation {
        try rotation.begin(to: $0)
      } step: {
        try rotation.step() != nil
      } complete: {
        try rotation.complete()
      }
    }
  }

  private static let postgresql = Implementation(testDescription: "PostgreSQL") { hashKey in
    let rig = try await PostgreSQLRig(hashKey: hashKey)
    await (try await rig.open()).close()
    return PreparedStore(rig.administration) {
      try await rig.open()
    } breakKeys: {
      try await rig.run("UPDATE siwa.account SET data_key = sha512(data_key)")
    } changeHashKeys: { change in
      let statement =
        switch change {
        case .completed: "UPDATE siwa.hash_key SET is_complete = true"
        case .withoutSecond: "DELETE FROM siwa.hash_key WHERE number = 2"
        }
      try await rig.run(statement)
    } run: { _, statement in
      try await rig.run("\(statement)")
    } rotate: { page in
      let database = try PostgreSQLStoreDatabase(rig.connectionInfo, connections: 1, statementTimeout: .seconds(300))
      let keys = try await database.read { connection in try await connection.openKeys(with: rig.key) }
      let rotation = PostgreSQLHashRotation(PostgreSQLKeyedDatabase(database, keys), page: page)
      return SteppedRotation {
        try await rotation.begin(to: $0)
      } step: {
        try await rotation.step() != nil
      } complete: {
        try await rotation.complete()
      }
    }
  }
}

/// A store that is gone with this value.
@Loop
final class PreparedStore {
  /// Opens it once more, as another program would.
  let open: @Loop () async throws -> any AccountStore

  /// What an operator does with it.
  let administration: any AccountStoreAdministration

  /// Makes the data keys of all accounts ones that do not open.
  let breakKeys: @Loop () async throws -> Void

  /// What becomes of the hashing keys under the programs' feet.
  enum HashKeyChange {
    /// A rotation counts as complete that is not.
    case completed
    /// The database is one from before the second key.
    case withoutSecond
  }

  let changeHashKeys: @Loop (HashKeyChange) async throws -> Void

  /// Changes what is in the database: by the first statement in SQLite, and by the second in PostgreSQL.
  let run: @Loop (_ sqlite: StaticString, _ postgresql: StaticString) async throws -> Void

  /// Prepares to replace the hashing key, with so many accounts or rows in a step.
  let rotate: @Loop (Int64) async throws -> SteppedRotation

  init(
    _ administration: any AccountStoreAdministration, open: @escaping @Loop () async throws -> any AccountStore,
    breakKeys: @escaping @Loop () async throws -> Void,
    changeHashKeys: @escaping @Loop (HashKeyChange) async throws -> Void,
    run: @escaping @Loop (_ sqlite: StaticString, _ postgresql: StaticString) async throws -> Void,
    rotate: @escaping @Loop (Int64) async throws -> SteppedRotation
  ) {
    (self.administration, self.open, self.breakKeys, self.rotate) = (administration, open, breakKeys, rotate)
    (self.changeHashKeys, self.run) = (changeHashKeys, run)
  }

  /// Runs `body` with a store of its own.
  static func with<Value>(
    _ implementation: Implementation, hashKey: [UInt8]? = Sample.hashKey,
    _ body: @Loop (any AccountStore) async throws -> Value
  ) async throws -> Value {
    try await with(implementation, hashKey: hashKey) { store, _ in try await body(store) }
  }

  /// The same with what an operator does with it.
  static func with<Value>(
    _ implementation: Implementation, hashKey: [UInt8]? = Sample.hashKey,
    _ body: @Loop (any AccountStore, any AccountStoreAdministration) async throws -> Value
  ) async throws -> Value {
    let prepared = try await implementation.prepare(hashKey: hashKey)
    let store = try await prepared.open()
    let result: Result<Value, any Error>
    do { result = .success(try await body(store, prepared.administration)) } catch { result = .failure(error) }
    await store.close()
    return try result.get()
  }
}

/// A rotation of the hashing key, a transaction at a time: whoever calls no further step is as good as killed.
@Loop
struct SteppedRotation {
  /// Says whether there is something to move.
  let begin: @Loop (HashKey?) async throws -> Bool
  /// Says whether something was left to move.
  let step: @Loop () async throws -> Bool
  let complete: @Loop () async throws -> Void

  init(
    begin: @escaping @Loop (HashKey?) async throws -> Bool, step: @escaping @Loop () async throws -> Bool,
    complete: @escaping @Loop () async throws -> Void
  ) { (self.begin, self.step, self.complete) = (begin, step, complete) }

  /// Goes on with what another one has begun, to its end.
  func resume() async throws {
    _ = try await begin(nil)
    try await finish()
  }

  /// Moves all that is left, and completes it.
  func finish() async throws {
    while try await step() {}
    try await complete()
  }
}
