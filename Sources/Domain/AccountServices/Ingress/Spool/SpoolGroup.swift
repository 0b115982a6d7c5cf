/// What waits for a transaction of the spool, and who waits for it.
struct SpoolGroup {
  /// Resumed with the record's number, or why it has none.
  typealias Inserter = CheckedContinuation<Result<Int64, SpoolError>, Never>
  /// Resumed once the record is gone.
  typealias Remover = CheckedContinuation<Void, Never>

  var inserts: [(record: SpooledRecord, waiter: Inserter)] = []
  var removals: [(sequence: Int64, waiter: Remover)] = []

  var isEmpty: Bool { inserts.isEmpty && removals.isEmpty }

  var changes: SpoolFile.Changes {
    SpoolFile.Changes(inserts: inserts.map(\.record), removals: removals.map(\.sequence))
  }
}
