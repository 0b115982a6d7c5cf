/// How much is held at once, of each partition and of all. What goes on, or could, has bounds of its own; what backs off
/// (waits for its next attempt, or behind such a record of its account) has wider ones, so that a target that refuses for
/// hours holds up nobody else. Its steps say which partitions are to be paused, and which are to be read on.
///
/// What goes on makes room again in a moment, as a rule: whoever reads waits for that a while, and only then has paused what
/// is full still.
package struct Room {
  /// A partition's place, from `add` to `remove`.
  package typealias ID = Int

  private struct Share {
    var held = 0
    var backingOff = 0
    var isPaused = false
    /// Whether it was paused because too much of it backs off.
    var isStuck = false
    /// Whether it is on its way to another member, and never read on.
    var isLeaving = false

    var active: Int { held - backingOff }
    /// Whether its bounds say something of what is read.
    var isRead: Bool { !isPaused && !isLeaving }
  }

  private let bounds: ProcessingBounds
  private var shares: [Share?] = []
  private var free: [ID] = []
  /// How many records are begun and not done, in all partitions.
  package private(set) var held = 0
  /// How many of them wait for their next attempt, or behind one of their account that does.
  package private(set) var backingOff = 0
  /// Whether all partitions were paused, there being no room.
  private var isFullAndPaused = false
  /// Whether nothing is read on any more.
  private var isClosed = false

  /// Room within these bounds.
  package init(_ bounds: ProcessingBounds) { self.bounds = bounds }

  /// How many records go on, or could.
  private var active: Int { held - backingOff }

  /// How many more records may be begun.
  package var left: Int { hasNoRoom ? 0 : bounds.inFlight - active }

  private var hasNoRoom: Bool { active >= bounds.inFlight || backingOff >= bounds.waiting }

  /// Whether so much goes on, of all or of a partition that is read, that nothing more is to be begun for the moment.
  package var isFull: Bool { hasNoRoom || shares.contains { $0.map { $0.isRead && isFull($0) } ?? false } }

  /// Whether there is hardly room, for all or for a partition that is read: a few at a time would be read one by one.
  package var isCrowded: Bool {
    active > bounds.inFlight * 3 / 4 || backingOff >= bounds.waiting
      || shares.contains { $0.map { $0.isRead && $0.active > bounds.inFlightPerPartition * 3 / 4 } ?? false }
  }

  /// How many partitions are paused.
  package var paused: Int { shares.count { $0?.isPaused == true } }

  /// How many records of a partition back off.
  package func backingOff(_ id: ID) -> Int { shares[id]?.backingOff ?? 0 }

  /// Whether a partition is paused.
  package func isPaused(_ id: ID) -> Bool { shares[id]?.isPaused ?? false }

  // MARK: Partitions

  /// A partition has come.
  package mutating func add() -> ID {
    guard let id = free.popLast() else {
      shares.append(Share())
      return shares.count - 1
    }
    shares[id] = Share()
    return id
  }

  /// A partition is on its way to another member.
  package mutating func leave(_ id: ID) { shares[id]?.isLeaving = true }

  /// A partition has gone, with all that is held of it. Returns what is to be read on.
  package mutating func remove(_ id: ID) -> [ID] {
    guard let share = shares[id] else { return [] }
    held -= share.held
    backingOff -= share.backingOff
    shares[id] = nil
    free.append(id)
    return resume()
  }

  /// Nothing is read on from here. Returns what is to be paused.
  package mutating func close() -> [ID] {
    isClosed = true
    return pause(shares.indices)
  }

  // MARK: Records

  /// So many records of a partition are begun.
  package mutating func begin(_ count: Int, of id: ID) {
    held += count
    shares[id]?.held += count
  }

  /// A record of a partition is done. Returns what is to be read on.
  package mutating func finish(_ id: ID) -> [ID] {
    held -= 1
    shares[id]?.held -= 1
    let isWorthIt = isFullAndPaused ? hasRoom : shares[id].map { $0.isPaused && hasRoom(for: $0) } ?? false
    return isWorthIt ? resume() : []
  }

  /// A record backs off.
  package mutating func backOff(_ id: ID) {
    backingOff += 1
    shares[id]?.backingOff += 1
  }

  /// A record does not back off any more.
  package mutating func goOn(_ id: ID) {
    backingOff -= 1
    shares[id]?.backingOff -= 1
  }

  // MARK: Pausing

  /// Returns what is to be paused: all where there is no room, or else the partitions of which too much is held.
  package mutating func pauseFull() -> [ID] {
    isFullAndPaused = isFullAndPaused || hasNoRoom
    return pause(hasNoRoom ? Array(shares.indices) : shares.indices.filter { shares[$0].map(isFull) ?? false })
  }

  /// Returns those of the partitions that are to be paused because too much of them backs off: that lasts.
  package mutating func pauseStuck() -> [ID] {
    pause(shares.indices.filter { shares[$0].map { $0.backingOff >= bounds.waitingPerPartition } ?? false })
  }

  /// Returns those of the partitions that are not paused yet.
  package mutating func pause(_ ids: some Sequence<ID>) -> [ID] {
    var paused: [ID] = []
    for id in ids {
      guard let share = shares[id], !share.isPaused else { continue }
      shares[id]?.isPaused = true
      shares[id]?.isStuck = share.backingOff >= bounds.waitingPerPartition || backingOff >= bounds.waiting
      paused.append(id)
    }
    return paused
  }

  /// Returns those that are to be read on: there is room for them.
  package mutating func resume() -> [ID] {
    guard !isClosed, !isFullAndPaused || hasRoom else { return [] }
    isFullAndPaused = false
    var resumed: [ID] = []
    for id in shares.indices {
      guard let share = shares[id], share.isPaused, !share.isLeaving, hasRoom(for: share) else { continue }
      shares[id]?.isPaused = false
      resumed.append(id)
    }
    return resumed
  }

  /// Whether a partition was paused because too much of it backs off.
  package func isStuck(_ id: ID) -> Bool { shares[id]?.isStuck ?? false }

  private func isFull(_ share: Share) -> Bool {
    share.active >= bounds.inFlightPerPartition || share.backingOff >= bounds.waitingPerPartition
  }

  private var hasRoom: Bool { active <= bounds.inFlight / 2 && backingOff <= bounds.waiting * 7 / 8 }

  private func hasRoom(for share: Share) -> Bool {
    share.active <= bounds.inFlightPerPartition / 2 && share.backingOff <= bounds.waitingPerPartition * 7 / 8
  }
}
