import SQLite

/// SQLite alone, with rows as large in tables of the same shape: an account, a state, a row of the ledger, a fence, an
/// announcement and its removal.
final class Bare: @unchecked Sendable {
  // Used by one thread at a time: whoever measures waits for each batch.
  private let database: Database
  private let statements: [Statement]
  private let announcement: Statement
  private let removal: Statement

  init(_ path: String) throws {
    database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(20))
    try database.execute(
      """
      CREATE TABLE account (hash BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE relay (hash BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE fence (hash BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE ledger (id TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE announcement (number INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT;
      """)
    statements = [
      try database.prepare("INSERT INTO account VALUES (?, ?) ON CONFLICT DO NOTHING"),
      try database.prepare("INSERT INTO relay VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"),
      try database.prepare("INSERT INTO fence VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"),
    ]
    announcement = try database.prepare("INSERT INTO announcement VALUES (?, ?)")
    removal = try database.prepare("DELETE FROM announcement WHERE number = ?")
    ledger = try database.prepare("INSERT INTO ledger VALUES (?, ?)")
  }

  private let ledger: Statement
  private let sizes = [170, 80, 20]

  func insert(_ numbers: Range<Int>, of accounts: Int) throws {
    try database.transaction { () throws(SQLiteError) in
      for number in numbers {
        let hash = scattered(number % accounts)
        for (statement, size) in zip(statements, sizes) {
          try statement.run(hash, [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size))
        }
        try ledger.run("email-relay S25cB0PbHs6y97gYYmg-\(number)", [UInt8](repeating: 0, count: 90))
        try announcement.run(Int64(number), [UInt8](repeating: 0, count: 340))
      }
    }
    try database.transaction { () throws(SQLiteError) in for number in numbers { try removal.run(Int64(number)) } }
  }

  /// 32 bytes that do not come in order.
  private func scattered(_ number: Int) -> [UInt8] {
    var state = UInt64(truncatingIfNeeded: number) &* 0x9e37_79b9_7f4a_7c15
    return (0..<32).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }
}
