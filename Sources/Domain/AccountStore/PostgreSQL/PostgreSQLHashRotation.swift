import AccountEvents
import EventLoop
import PostgreSQL

/// Replaces the hashing key of a store in a database: adds the new one, moves all rows to hashes under it, page by page, and
/// notes that none is left. Each step is a transaction of its own, and nothing else keeps the place: a process that is
/// killed is followed by one that finds what is left.
@Loop
final class PostgreSQLHashRotation {
  /// What is moved, in this order.
  private enum Stage {
    case accounts(after: [UInt8])
    case ledger(consumer: String, event: String)
    case steps(event: String, target: String)
    case over
  }

  /// A row that is moved by itself, by its two keys.
  private struct Row {
    let first: String
    let second: String
    let move: HashMove
  }

  private let keyed: PostgreSQLKeyedDatabase
  private let page: Int64
  private let patience: Duration
  private var stage = Stage.accounts(after: [])
  /// What hashes name the key that rows are moved to. Somebody else may bring the same rotation to its end, and begin the
  /// next.
  private var begun: HashKeyID?

  /// A rotation with so many accounts or rows in a transaction. Behind one that waits for the keys all wait that write: it
  /// does so for no longer than `patience` at a time.
  init(
    _ keyed: PostgreSQLKeyedDatabase, page: Int64 = HashRotation.page, patience: Duration = .seconds(10)
  ) { (self.keyed, self.page, self.patience) = (keyed, page, patience) }

  private var hashing: HashChain { keyed.current.value.hashing }

  /// Does all of it.
  func run(
    to key: HashKey?, _ progress: (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> HashRotation {
    guard try await begin(to: key) else { return HashRotation(to: hashing) }
    let total = try await countOfRemaining()
    progress(StoreProgress(.moving, done: 0, total: total))
    var moved = 0
    while let count = try await step() {
      moved += count
      progress(StoreProgress(.moving, done: min(moved, total), total: total))
    }
    try await complete()
    return HashRotation(to: hashing, rows: total)
  }

  /// Adds the key, or finds the rotation that is under way; false where the key is in use and nothing is left to move.
  func begin(to key: HashKey?) async throws(AccountStoreError) -> Bool {
    let master = keyed.current.value.master
    // Until those are done that write with the keys before, which takes them moments; who comes later waits.
    let (name, isToBeMoved) = try await keyed.database.lockingKeys(waiting: patience) {
      connection -> (HashKeyID?, Bool) in
      let keys = try await connection.readKeys(with: master)
      switch try keys.beginning(of: key) {
      case .done: return (keys.hashing.newest, false)
      case .underWay: return (keys.hashing.newest, true)
      case .begins(let wrapped):
        try await connection.add(wrapped, isComplete: false)
        return (wrapped.name, true)
      }
    }
    begun = name
    try await keyed.refresh()
    if isToBeMoved { return true }
    guard try await countOfRemaining() > 0 else { return false }
    // Rows that were left behind, as `verify` names them.
    try await mark(isComplete: false)
    return true
  }

  /// Moves a page, and returns how many accounts or rows that were; nil where nothing is left.
  func step() async throws(AccountStoreError) -> Int? {
    while true {
      switch stage {
      case .accounts(let last):
        let moves = try await accounts(after: last)
        guard let end = moves.last else {
          stage = .ledger(consumer: "", event: "")
          continue
        }
        stage = .accounts(after: end.from.bytes)
        return try await keyed.move(moves)
      case .ledger(let consumer, let event):
        let rows = try await settled(after: (consumer, event))
        guard let end = rows.last else {
          stage = .steps(event: "", target: "")
          continue
        }
        stage = .ledger(consumer: end.first, event: end.second)
        return try await move(
          rows,
          """
          UPDATE siwa.ledger SET hash = moved.destination, generation = $5
          FROM unnest($1, $2, $3, $4) AS moved (consumer, id, hash, destination)
          WHERE ledger.consumer = moved.consumer AND ledger.event_id = moved.id AND ledger.hash = moved.hash
          """)
      case .steps(let event, let target):
        let rows = try await steps(after: (event, target))
        guard let end = rows.last else {
          stage = .over
          continue
        }
        stage = .steps(event: end.first, target: end.second)
        return try await move(
          rows,
          """
          UPDATE siwa.erasure_step SET hash = moved.destination, generation = $5
          FROM unnest($1, $2, $3, $4) AS moved (id, target, hash, destination)
          WHERE erasure_step.event_id = moved.id AND erasure_step.target = moved.target AND erasure_step.hash = moved.hash
          """)
      case .over: return nil
      }
    }
  }

  /// Notes that nothing is left.
  func complete() async throws(AccountStoreError) {
    // Counting reads all of the tables, and holds nobody up. For as long as no other key is added it remains true: whatever
    // is written since the rotation has begun has the newest hash.
    let left = try await countOfRemaining()
    guard left == 0 else { throw AccountStoreError(.failed, "\(left) rows bear a former hash still: run it again") }
    try await mark(isComplete: true)
  }

  private func mark(isComplete: Bool) async throws(AccountStoreError) {
    let (master, begun) = (keyed.current.value.master, begun)
    _ = try await keyed.database.lockingKeys(waiting: patience) { connection in
      let keys = try await connection.readKeys(with: master)
      guard keys.hashing.newest == begun else { throw AccountStoreError.nextRotation }
      return try await connection.execute(
        "UPDATE siwa.hash_key SET is_complete = $1 WHERE number = $2", isComplete, keys.generation)
    }
    try await keyed.refresh()
  }

  /// How many rows bear a former hash; what belongs to an account counts as one.
  func countOfRemaining() async throws(AccountStoreError) -> Int {
    let begun = begun
    return try await keyed.read(of: []) { connection, keys in
      guard keys.hashing.newest == begun else { throw AccountStoreError.nextRotation }
      return try await connection.count(before: keys.generation)
    }
  }

  // MARK: Pages

  private func accounts(after last: [UInt8]) async throws(AccountStoreError) -> [HashMove] {
    let (hashing, page) = (hashing, page)
    return try await keyed.database.read { connection in
      try await connection.query(
        "SELECT hash, generation FROM siwa.guard WHERE hash > $1 AND generation < $2 ORDER BY hash LIMIT $3", last,
        Int64(hashing.generation), page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in try row.move(0, of: 1, hashing) }
    }
  }

  private func settled(after place: (String, String)) async throws(AccountStoreError) -> [Row] {
    let (hashing, page) = (hashing, page)
    return try await keyed.database.read { connection in
      try await connection.query(
        """
        SELECT hash, generation, consumer, event_id FROM siwa.ledger
        WHERE (consumer, event_id) > ($1, $2) AND generation < $3 ORDER BY consumer, event_id LIMIT $4
        """, place.0, place.1, Int64(hashing.generation), page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        Row(first: try row.value(2), second: try row.value(3), move: try row.move(0, of: 1, hashing))
      }
    }
  }

  private func steps(after place: (String, String)) async throws(AccountStoreError) -> [Row] {
    let (hashing, page) = (hashing, page)
    return try await keyed.database.read { connection in
      try await connection.query(
        """
        SELECT hash, generation, event_id, target FROM siwa.erasure_step
        WHERE (event_id, target) > ($1, $2) AND generation < $3 ORDER BY event_id, target LIMIT $4
        """, place.0, place.1, Int64(hashing.generation), page, limit: PostgreSQLStoreDatabase.limit
      ) { row throws(PostgreSQLError) in
        Row(first: try row.value(2), second: try row.value(3), move: try row.move(0, of: 1, hashing))
      }
    }
  }

  private func move(_ rows: [Row], _ statement: StaticString) async throws(AccountStoreError) -> Int {
    try await keyed.write(to: []) { connection, keys in
      var batch = Batch.locked
      batch.append(
        statement, PostgreSQLArray(rows.map(\.first)), PostgreSQLArray(rows.map(\.second)),
        PostgreSQLArray(rows.map(\.move.from.bytes)), PostgreSQLArray(rows.map(\.move.to.bytes)), keys.generation)
      _ = try await connection.run(locked: batch, keys) { _, _ throws(PostgreSQLError) in }
      return rows.count
    }
  }
}

extension Connection {
  /// Adds a hashing key.
  func add(_ key: StoreKeys.WrappedHashKey, isComplete: Bool) async throws {
    try await execute(
      "INSERT INTO siwa.hash_key (number, name, master_key_id, key, is_complete) VALUES ($1, $2, $3, $4, $5)",
      Int64(key.number), key.name?.description, key.masterKeyID, key.key, isComplete)
  }

  /// How many rows note fewer hashing keys than so many.
  func count(before generation: Int64) async throws -> Int {
    let count = try await first(
      """
      SELECT (SELECT count(*) FROM siwa.guard WHERE generation < $1)
        + (SELECT count(*) FROM siwa.ledger WHERE generation < $1)
        + (SELECT count(*) FROM siwa.erasure_step WHERE generation < $1)
      """, generation
    ) { row throws(PostgreSQLError) in try row.count(0) ?? 0 }
    return count ?? 0
  }
}
