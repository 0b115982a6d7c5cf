import AccountEvents
import EventLoop
import PostgreSQL

/// The database of a store with the keys that hold in it. Another process may replace the hashing key at any time: whoever
/// writes locks the keys until the transaction ends, whoever reads asks for them behind what is read, and where others
/// hold than those that were used, all of it is done again.
@Loop
final class PostgreSQLKeyedDatabase {
  /// How often something is done again before the caller is told.
  private static let attempts = 8

  let database: PostgreSQLStoreDatabase
  nonisolated let current: CurrentKeys

  /// A database with keys that were read from it.
  init(_ database: PostgreSQLStoreDatabase, _ keys: StoreKeys) {
    (self.database, current) = (database, CurrentKeys(keys))
  }

  /// Runs `body`, which only reads what is known of these accounts: all of it stands under their newest hashes. Its last
  /// exchange runs with `run(_:holding:)`.
  func read<Value>(
    of accounts: some Collection<Account>, _ body: @Loop (Connection, StoreKeys) async throws -> Value
  ) async throws(AccountStoreError) -> Value {
    try await withKeys { keys throws(AccountStoreError) in
      try await move(accounts, keys)
      return try await database.read { connection in try await body(connection, keys) }
    }
  }

  /// Runs `body` in a transaction that may change what is known of these accounts: all of it stands under their newest
  /// hashes. Its first exchange is a batch that begins as `Batch.locked`, and runs with `run(locked:_:)`.
  func write<Value>(
    to accounts: some Collection<Account>, _ body: @Loop (Connection, StoreKeys) async throws -> Value
  ) async throws(AccountStoreError) -> Value {
    try await withKeys { keys throws(AccountStoreError) in
      try await move(accounts, keys)
      return try await database.write { connection in try await body(connection, keys) }
    }
  }

  /// The same of accounts of which some are known by their ids alone.
  func write<Value>(
    to accounts: some Collection<Account>, and ids: [AccountID],
    _ body: @Loop (Connection, StoreKeys) async throws -> Value
  ) async throws(AccountStoreError) -> Value {
    try await withKeys { keys throws(AccountStoreError) in
      try await move(accounts, keys)
      try await move(ids, keys)
      return try await database.write { connection in try await body(connection, keys) }
    }
  }

  private func move(_ ids: [AccountID], _ keys: StoreKeys) async throws(AccountStoreError) {
    guard keys.state.isMoving, !ids.isEmpty else { return }
    _ = try await database.write { connection in
      try await PostgreSQLMover.move(ids.map { keys.hashing.move(of: $0) }, keys, connection)
    }
  }

  /// The same of the account with this id.
  func read<Value>(
    of id: AccountID, _ body: @Loop (Connection, StoreKeys) async throws -> Value
  ) async throws(AccountStoreError) -> Value {
    try await withKeys { keys throws(AccountStoreError) in
      try await move([id], keys)
      return try await database.read { connection in try await body(connection, keys) }
    }
  }

  /// Moves accounts to their newest hashes, and returns how many were moved.
  func move(_ moves: [HashMove]) async throws(AccountStoreError) -> Int {
    try await withKeys { keys throws(AccountStoreError) in
      try await database.write { connection in try await PostgreSQLMover.move(moves, keys, connection) }
    }
  }

  /// While a rotation of the hashing key is under way, whoever comes to an account does not wait for its turn.
  private func move(_ accounts: some Collection<Account>, _ keys: StoreKeys) async throws(AccountStoreError) {
    guard keys.state.isMoving else { return }
    let moves = Set(accounts.lazy.map { keys.hashing.move(of: $0) })
    if moves.isEmpty { return }
    _ = try await database.write { connection in try await PostgreSQLMover.move(Array(moves), keys, connection) }
  }

  private func withKeys<Value>(
    _ body: @Loop (StoreKeys) async throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    for _ in 1..<Self.attempts {
      do throws(AccountStoreError) {
        return try await body(current.value)
      } catch {
        guard error == .staleKeys else { throw error }
        try await refresh()
      }
    }
    return try await body(current.value)
  }

  /// Reads the keys that hold now.
  func refresh() async throws(AccountStoreError) {
    let master = current.value.master
    let keys = try await database.read { connection in try await connection.readKeys(with: master) }
    current.replace(with: keys)
  }
}

extension AccountStoreError {
  /// Other keys hold than those that were used. Nothing was changed.
  fileprivate static let staleKeys = AccountStoreError(.unavailable, "its hashing key is being replaced")
}

extension Batch {
  private static let state: StaticString =
    "SELECT number, is_complete, name, master_key_id FROM siwa.hash_key ORDER BY number DESC LIMIT 1"

  /// A batch that looks rows up by their keys, and locks the hashing keys until the transaction ends: those that it finds
  /// in its last execution hold until then. Who replaces them waits for that lock; nobody else does.
  static var locked: Batch {
    var batch = byKey
    batch.append("LOCK siwa.hash_key IN ROW SHARE MODE")
    batch.append(state)
    return batch
  }

  /// Adds an execution that asks which keys hold.
  fileprivate mutating func askForState() { append(Self.state) }

  /// Where `locked` asks.
  fileprivate static let lockedState = 2
}

extension Connection {
  /// Runs a batch that reads. What it has read under the hashes that `keys` make is all that there was, or this throws.
  @discardableResult
  func run(
    _ reading: Batch, holding keys: StoreKeys, row body: (Int, borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws -> [Int] {
    var batch = reading
    batch.askForState()
    return try await run(batch, asking: reading.count, keys, row: body)
  }

  /// Runs a batch that begins as `Batch.locked`. Throws where other keys hold than `keys`: then nothing of the transaction
  /// may be committed.
  @discardableResult
  func run(
    locked batch: Batch, _ keys: StoreKeys, row body: (Int, borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws -> [Int] {
    try await run(batch, asking: Batch.lockedState, keys, row: body)
  }

  private func run(
    _ batch: Batch, asking: Int, _ keys: StoreKeys, row body: (Int, borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws -> [Int] {
    var state: HashingState?
    let counts = try await run(batch) { execution, row throws(PostgreSQLError) in
      guard execution == asking else { return try body(execution, row) }
      state = HashingState(
        generation: try row.count(0) ?? 0, isMoving: try row.value(1, as: Bool.self) == false,
        newest: try row.value(2, as: String?.self).flatMap { HashKeyID($0) }, masterKeyID: try row.value(3))
    }
    guard state == keys.state else { throw AccountStoreError.staleKeys }
    return counts
  }
}
