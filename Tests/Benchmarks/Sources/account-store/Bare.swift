import SQLite

/// SQLite alone, with rows as large in tables of the shape that the store had until version 4: an account, a state, a
/// fence, a row of the ledger. It stays so, whatever the store's form: the yardstick of all versions.
final class Bare: @unchecked Sendable {
  // Used by one thread at a time: whoever measures waits for each batch.
  private let database: Database
  private let statements: [Statement]
  private let ledger: Statement

  init(_ path: String) throws {
    database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(20))
    try database.execute(
      """
      PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 16384; PRAGMA journal_size_limit = 67108864;
      CREATE TABLE account (hash BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE relay (hash BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE fence (hash BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE ledger (id TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
      """)
    statements = [
      try database.prepare("INSERT INTO account VALUES (?, ?) ON CONFLICT DO NOTHING"),
      try database.prepare("INSERT INTO relay VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"),
      try database.prepare("INSERT INTO fence VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"),
    ]
    ledger = try database.prepare("INSERT INTO ledger VALUES (?, ?)")
  }

  private let sizes = [170, 110, 25]

  func insert(_ numbers: Range<Int>, of accounts: Int) throws {
    try database.transaction { () throws(SQLiteError) in
      for number in numbers {
        let id = mixed(UInt64(number))
        let hash = scattered(id % UInt64(accounts))
        for (statement, size) in zip(statements, sizes) {
          try statement.run(hash, [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size))
        }
        try ledger.run("email-relay \(mixed(id))\(id)", [UInt8](repeating: 0, count: 90))
      }
    }
  }

  /// 32 bytes that do not come in order.
  private func scattered(_ number: UInt64) -> [UInt8] {
    (0..<4 as Range<UInt64>).flatMap { part in
      let word = mixed(number &* 4 &+ part)
      return (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
  }
}

/// Each number becomes another one.
func mixed(_ number: UInt64) -> UInt64 {
  var number = number &+ 0x9e37_79b9_7f4a_7c15
  number = (number ^ (number >> 30)) &* 0xbf58_476d_1ce4_e5b9
  number = (number ^ (number >> 27)) &* 0x94d0_49bb_1331_11eb
  return number ^ (number >> 31)
}
