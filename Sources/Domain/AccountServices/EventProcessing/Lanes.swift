/// The records of each account, in the order in which they came: the first of a lane is under way, the others wait for it.
package struct Lanes<Record> {
  /// A lane, as long as there is a record in it.
  package typealias ID = Int

  private struct Lane {
    let key: RecordKey
    var first: Record
    var others = FIFO<Record>()
    var isBackingOff = false
  }

  private var lanes: [Lane?] = []
  private var free: [ID] = []
  private var ids: [RecordKey: ID] = [:]
  /// Lanes of which a record was given up for its age, and none has succeeded since.
  private var givingUp: Set<ID> = []

  /// No lanes.
  package init() {}

  /// Puts a record behind the others of its key. Where there are none, it is to be begun with; where the lane backs off, it
  /// does with it.
  package mutating func append(_ record: Record, key: RecordKey) -> (lane: ID, isFirst: Bool, isBackingOff: Bool) {
    if let id = ids[key], let lane = lanes[id] {
      lanes[id]?.others.append(record)
      return (id, false, lane.isBackingOff)
    }
    let lane = Lane(key: key, first: record)
    let id: ID
    if let last = free.popLast() {
      id = last
      lanes[id] = lane
    } else {
      id = lanes.count
      lanes.append(lane)
    }
    ids[key] = id
    return (id, true, false)
  }

  /// The first record of a lane has come to its end: returns the next, which is to be begun with.
  package mutating func leave(_ id: ID) -> Record? {
    guard let next = lanes[id]?.others.popFirst() else {
      close(id)
      return nil
    }
    lanes[id]?.first = next
    return next
  }

  /// The first record of a lane waits for its next attempt, and all others behind it: returns them all.
  package mutating func backOff(_ id: ID) -> [Record] {
    lanes[id]?.isBackingOff = true
    return records(of: id)
  }

  /// A lane goes on that backed off: returns its records; none where it did not.
  package mutating func goOn(_ id: ID) -> [Record] {
    guard lanes[id]?.isBackingOff == true else { return [] }
    lanes[id]?.isBackingOff = false
    return records(of: id)
  }

  /// A lane's record was given up: the next one is tried for no longer.
  package mutating func gaveUp(_ id: ID) { givingUp.insert(id) }

  /// A lane's record has succeeded.
  package mutating func recovered(_ id: ID) { if !givingUp.isEmpty { givingUp.remove(id) } }

  /// Whether one of the lane was given up, and none has succeeded since.
  package func hasGivenUp(_ id: ID) -> Bool { givingUp.contains(id) }

  /// Takes out what is to go. Returns it, and which records are the first ones of their lanes now, in place of such that
  /// went: they are to be begun with, and do not back off.
  package mutating func removeAll(where isToGo: (Record) -> Bool) -> (
    removed: [Record], first: [Record], goOn: [Record]
  ) {
    var result: (removed: [Record], first: [Record], goOn: [Record]) = ([], [], [])
    for id in lanes.indices {
      guard let lane = lanes[id] else { continue }
      var others = FIFO<Record>()
      lane.others.forEach { if isToGo($0) { result.removed.append($0) } else { others.append($0) } }
      lanes[id]?.others = others
      guard isToGo(lane.first) else { continue }
      result.removed.append(lane.first)
      if lane.isBackingOff { others.forEach { result.goOn.append($0) } }
      lanes[id]?.isBackingOff = false
      if let next = leave(id) { result.first.append(next) }
    }
    return result
  }

  /// The first record of each lane.
  package var first: [Record] { lanes.compactMap { $0?.first } }

  private func records(of id: ID) -> [Record] {
    guard let lane = lanes[id] else { return [] }
    var records = [lane.first]
    lane.others.forEach { records.append($0) }
    return records
  }

  private mutating func close(_ id: ID) {
    guard let lane = lanes[id] else { return }
    ids[lane.key] = nil
    lanes[id] = nil
    recovered(id)
    free.append(id)
  }
}

/// The key of an account's records.
package struct RecordKey: Hashable, Sendable {
  /// The bytes.
  package let bytes: [UInt8]

  /// A key of those bytes.
  package init(bytes: [UInt8]) { self.bytes = bytes }

  /// All bytes at once: an array hashes them one by one.
  package func hash(into hasher: inout Hasher) { unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) } }
}
