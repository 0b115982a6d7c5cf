import SQLite

/// What was read in one go.
struct SpoolPage: Sendable {
  /// The records, in the order in which they were asked for.
  private(set) var records: [SpooledRecord] = []
  /// The numbers of those that cannot be read as records: they stay where they are until somebody has looked at them.
  private(set) var damaged: [Int64] = []

  /// Adds a row: sequence, since, topic, key, headers, value.
  mutating func add(_ row: borrowing Row) throws(SQLiteError) {
    do throws(SQLiteError) {
      records.append(try SpooledRecord(reading: row))
    } catch {
      guard error.code == .unexpectedValue else { throw error }
      damaged.append(try row.value(0))
    }
  }
}
