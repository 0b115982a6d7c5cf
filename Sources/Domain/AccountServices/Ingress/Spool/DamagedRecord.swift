/// A row of the spool that cannot be read as a record: it stays where it is until somebody has looked at it.
struct DamagedRecord: Sendable, Equatable {
  /// Its place in the queue.
  let sequence: Int64
  /// What it counts under: its key, or its value where it has none.
  let account: [UInt8]
}

/// What was read in one go.
struct SpoolPage: Sendable {
  /// The records, oldest first.
  var records: [SpooledRecord] = []
  /// What lies between them.
  var damaged: [DamagedRecord] = []
}
