import EventLoop

/// What waits for a transaction of the spool, and who waits for it.
struct SpoolGroup {
  /// Told the record's number, or why it has none.
  typealias Inserter = @Loop (Result<Int64, SpoolError>) -> Void
  /// Told once the record is gone.
  typealias Remover = @Loop () -> Void

  /// A removal with whoever waits for it.
  typealias Removal = (sequence: Int64, waiter: Remover)

  var inserts: [(record: SpooledRecord, waiter: Inserter)] = []
  var removals: [Removal] = []

  var isEmpty: Bool { inserts.isEmpty && removals.isEmpty }

  /// Takes out what goes into one transaction, in its order: so much that it is worth its sync, and so little that the
  /// database's log stays small.
  mutating func takeSome(removals limit: Int) -> SpoolGroup {
    var (count, size) = (0, 0)
    while count < min(inserts.count, Self.most), size < Self.mostBytes {
      size += inserts[count].record.size
      count += 1
    }
    let taken = SpoolGroup(inserts: Array(inserts.prefix(count)), removals: Array(removals.prefix(limit)))
    inserts.removeFirst(taken.inserts.count)
    removals.removeFirst(taken.removals.count)
    return taken
  }

  /// How many of each go into one transaction at most.
  static let most = 256
  private static let mostBytes = 1 << 20

  var changes: SpoolFile.Changes {
    SpoolFile.Changes(inserts: inserts.map(\.record), removals: removals.map(\.sequence))
  }
}
