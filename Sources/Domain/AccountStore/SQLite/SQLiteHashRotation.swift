import AccountEvents
import SQLite

/// Replaces the hashing key of a store in a file: adds the new one, moves all rows to hashes under it, page by page, and
/// notes that none is left. Each step is a transaction of its own, and nothing else keeps the place: a process that is
/// killed is followed by one that finds what is left.
final class SQLiteHashRotation {
  /// A table whose rows are moved with their account, in the order of the hashes; of fences those of one consumer.
  private struct AccountPages {
    let reading: Statement
    let consumer: String?
    var last: [UInt8] = []
  }

  /// A table whose rows are moved one by one.
  private struct RowPages {
    let reading: Statement
    let writing: Statement
    var last = Int64.min
  }

  private let file: SQLiteStoreFile
  private let page: Int64
  private let remaining: Statement
  private var accounts: [AccountPages] = []
  private var rows: [RowPages] = []
  /// What hashes name the key that rows are moved to. Somebody else may bring the same rotation to its end, and begin the
  /// next.
  private var begun: HashKeyID?

  /// A rotation with so many accounts or rows in a transaction.
  init(_ file: SQLiteStoreFile, page: Int64 = HashRotation.page) throws(AccountStoreError) {
    (self.file, self.page) = (file, page)
    let database = file.database
    remaining = try AccountStoreError.translating { () throws(SQLiteError) in
      try database.prepare(
        """
        SELECT (SELECT count(*) FROM account WHERE generation < ?1)
          + (SELECT count(*) FROM event_fence WHERE generation < ?1)
          + (SELECT count(*) FROM erasure_fence WHERE generation < ?1)
          + (SELECT count(*) FROM ended_authorization WHERE generation < ?1)
          + (SELECT count(*) FROM own_revocation WHERE generation < ?1)
          + (SELECT count(*) FROM ledger WHERE generation < ?1)
          + (SELECT count(*) FROM erasure_progress WHERE generation < ?1)
        """)
    }
  }

  /// Does all of it.
  func run(
    to key: HashKey?, _ progress: (StoreProgress) -> Void
  ) throws(AccountStoreError) -> HashRotation {
    guard try begin(to: key) else { return HashRotation(to: file.keys.hashing) }
    let total = try countOfRemaining()
    progress(StoreProgress(.moving, done: 0, total: total))
    var moved = 0
    while let count = try step() {
      moved += count
      progress(StoreProgress(.moving, done: min(moved, total), total: total))
    }
    try complete()
    return HashRotation(to: file.keys.hashing, rows: total)
  }

  /// Adds the key, or finds the rotation that is under way; false where the key is in use and nothing is left to move.
  func begin(to key: HashKey?) throws(AccountStoreError) -> Bool {
    var isToBeMoved = try file.write { () throws(AccountStoreError) in
      begun = file.keys.hashing.newest
      switch try file.keys.beginning(of: key) {
      case .done: return false
      case .underWay: return true
      case .begins(let wrapped):
        try SQLiteStoreFile.add(wrapped, isComplete: false, to: file.database)
        begun = wrapped.name
        return true
      }
    }
    if !isToBeMoved, try countOfRemaining() > 0 {
      // Rows that were left behind, as `verify` names them.
      try mark(isComplete: false)
      isToBeMoved = true
    }
    if isToBeMoved { try prepare() }
    return isToBeMoved
  }

  /// Moves a page, and returns how many rows that were; nil where nothing is left.
  func step() throws(AccountStoreError) -> Int? {
    while let pages = accounts.first {
      let found = try AccountStoreError.translating { () throws(SQLiteError) in try moves(pages) }
      if let last = found.last {
        accounts[0].last = last.from.bytes
        return try writePage { () throws(AccountStoreError) in try file.move(found) }
      }
      accounts.removeFirst()
    }
    while let pages = rows.first {
      let found = try AccountStoreError.translating { () throws(SQLiteError) in try moves(pages) }
      if let last = found.last {
        rows[0].last = last.row
        return try writePage { () throws(AccountStoreError) in
          try AccountStoreError.translating { () throws(SQLiteError) in
            for (row, move) in found {
              try pages.writing.run(row, move.from.bytes, move.to.bytes, file.keys.generation)
            }
          }
          return found.count
        }
      }
      rows.removeFirst()
    }
    return nil
  }

  /// Notes that nothing is left. What was moved stands in the log of the file until that is begun anew.
  func complete() throws(AccountStoreError) {
    // Counting reads all of the tables, and holds nobody up. For as long as no other key is added it remains true: whatever
    // is written since the rotation has begun has the newest hash.
    let left = try countOfRemaining()
    guard left == 0 else { throw AccountStoreError(.failed, "\(left) rows bear a former hash still: run it again") }
    try mark(isComplete: true)
    file.rememberErased()
    file.forgetErased(holdingOff: nil)
  }

  /// How many rows bear a former hash.
  func countOfRemaining() throws(AccountStoreError) -> Int {
    try file.snapshot { () throws(AccountStoreError) in
      try expectBegun()
      return try countOfRemainingNow()
    }
  }

  /// The same, in a transaction of the caller's.
  func countOfRemainingNow() throws(AccountStoreError) -> Int {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try remaining.first(file.keys.generation) { row throws(SQLiteError) in try row.count(0) ?? 0 } ?? 0
    }
  }

  // MARK: The rotation that was begun

  private func mark(isComplete: Bool) throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        try file.database.prepare("UPDATE hash_key SET is_complete = ? WHERE number = ?").run(
          isComplete ? 1 as Int64 : 0, file.keys.generation)
      }
    }
  }

  /// Runs `body` in a transaction in which the key that rows are moved to is the newest still.
  private func write<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try file.write { () throws(AccountStoreError) in
      try expectBegun()
      return try body()
    }
  }

  /// The same for a page.
  private func writePage(_ body: () throws(AccountStoreError) -> Int) throws(AccountStoreError) -> Int {
    try file.writePage { () throws(AccountStoreError) in
      try expectBegun()
      return try body()
    }
  }

  private func expectBegun() throws(AccountStoreError) {
    guard file.keys.hashing.newest == begun else { throw .nextRotation }
  }

  // MARK: Pages

  private func prepare() throws(AccountStoreError) {
    // With the new key.
    try file.snapshot { () throws(AccountStoreError) in }
    let database = file.database
    try AccountStoreError.translating { () throws(SQLiteError) in
      for reading in [
        "SELECT hash, generation FROM account WHERE hash > ?1 AND generation < ?2 ORDER BY hash LIMIT ?3",
        "SELECT hash, generation FROM erasure_fence WHERE hash > ?1 AND generation < ?2 ORDER BY hash LIMIT ?3",
        """
        SELECT DISTINCT hash, generation FROM ended_authorization WHERE hash > ?1 AND generation < ?2
        ORDER BY hash LIMIT ?3
        """,
        "SELECT DISTINCT hash, generation FROM own_revocation WHERE hash > ?1 AND generation < ?2 ORDER BY hash LIMIT ?3",
      ] as [StaticString] {
        accounts.append(AccountPages(reading: try database.prepare(reading), consumer: nil))
      }
      let fences = try database.prepare(
        """
        SELECT DISTINCT hash, generation FROM event_fence WHERE hash > ?1 AND generation < ?2 AND consumer = ?4
        ORDER BY hash LIMIT ?3
        """)
      try database.prepare("SELECT DISTINCT consumer FROM event_fence").forEach { row throws(SQLiteError) in
        accounts.append(AccountPages(reading: fences, consumer: try row.value(0)))
      }
      rows = [
        RowPages(
          reading: try database.prepare(
            """
            SELECT hash, generation, rowid FROM ledger WHERE rowid > ?1 AND generation < ?2 ORDER BY rowid LIMIT ?3
            """),
          writing: try database.prepare("UPDATE ledger SET hash = ?3, generation = ?4 WHERE rowid = ?1 AND hash = ?2")),
        RowPages(
          reading: try database.prepare(
            """
            SELECT hash, generation, number FROM erasure_progress WHERE number > ?1 AND generation < ?2
            ORDER BY number LIMIT ?3
            """),
          writing: try database.prepare(
            "UPDATE erasure_progress SET hash = ?3, generation = ?4 WHERE number = ?1 AND hash = ?2")),
      ]
    }
  }

  private func moves(_ pages: AccountPages) throws(SQLiteError) -> [HashMove] {
    let generation = file.keys.generation
    var found: [HashMove] = []
    func add(_ row: borrowing Row) throws(SQLiteError) { found.append(try row.move(0, of: 1, file.keys.hashing)) }
    if let consumer = pages.consumer {
      try pages.reading.forEach(pages.last, generation, page, consumer) { row throws(SQLiteError) in try add(row) }
    } else {
      try pages.reading.forEach(pages.last, generation, page) { row throws(SQLiteError) in try add(row) }
    }
    return found
  }

  private func moves(_ pages: RowPages) throws(SQLiteError) -> [(row: Int64, move: HashMove)] {
    var found: [(row: Int64, move: HashMove)] = []
    try pages.reading.forEach(pages.last, file.keys.generation, page) { row throws(SQLiteError) in
      found.append((try row.value(2), try row.move(0, of: 1, file.keys.hashing)))
    }
    return found
  }
}
