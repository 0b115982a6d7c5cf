/// How far a partition is done, where records are done in any order: the next process goes on at the first that is not.
package struct PartitionProgress {
  private struct Entry {
    let offset: Int64
    let time: Int64?
    var isDone = false
  }

  /// By offset; those before `head` are done, and the one at `head` is not.
  private var entries: [Entry] = []
  private var head = 0
  /// How many are done behind `head`.
  private var doneBehind = 0
  /// Whether some that are done behind `head` have no entry any more.
  private var forgotten = false
  /// The offset behind the last record that was begun.
  private(set) var end: Int64?

  /// Nothing begun. Everything before `start` is done, or will never be, if it is given.
  package init(from start: Int64? = nil) { end = start }

  /// How many records are begun and not done.
  package var count: Int { entries.count - head - doneBehind }

  /// The offset that everything before is done of; nil where that is not known.
  package var offset: Int64? { head < entries.count ? entries[head].offset : end }

  /// The offsets behind `offset` whose records are done: at most `limit` ranges, the first ones.
  package func doneBeyond(limit: Int) -> [Range<Int64>] {
    guard doneBehind > 0 || forgotten, let end else { return [] }
    var ranges: [Range<Int64>] = []
    var next = offset ?? end
    for entry in entries[head...] where !entry.isDone {
      if entry.offset > next { ranges.append(next..<entry.offset) }
      if ranges.count == limit { return ranges }
      next = entry.offset + 1
    }
    if next < end { ranges.append(next..<end) }
    return ranges
  }

  /// When the oldest record was made that is not done, in milliseconds since 1970; nil where there is none.
  package var oldest: Int64? { head < entries.count ? entries[head].time : nil }

  /// Whether the record is new: after one that goes back, those that were begun come a second time.
  package func isNew(_ offset: Int64) -> Bool { end.map { offset >= $0 } ?? true }

  /// Begins with the record at an offset beyond all before.
  package mutating func begin(_ offset: Int64, time: Int64?) {
    precondition(isNew(offset), "records are begun in their order")
    entries.append(Entry(offset: offset, time: time))
    end = offset + 1
  }

  /// The record is done.
  package mutating func finish(_ offset: Int64) {
    var (low, high) = (head, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].offset < offset { low = middle + 1 } else { high = middle }
    }
    precondition(low < entries.count && entries[low].offset == offset && !entries[low].isDone, "done without beginning")
    entries[low].isDone = true
    doneBehind += 1
    while head < entries.count, entries[head].isDone {
      head += 1
      doneBehind -= 1
    }
    forget()
  }

  /// Lets go of what is done, where that is most of what is held: one record can hold up many for days.
  private mutating func forget() {
    if head == entries.count {
      entries.removeAll(keepingCapacity: true)
      (head, forgotten) = (0, false)
    } else if head + doneBehind > max(1024, entries.count / 2) {
      entries.removeAll { $0.isDone }
      (head, doneBehind, forgotten) = (0, 0, true)
    }
  }
}
