import AccountEvents
import EventLoop

/// The lanes of all accounts, and whose turn it is to go from the spool to the log.
///
/// A lane is tried when its own next try is due, whatever becomes of others. How many are on their way at once decides how
/// fast a drain is, because a log and a disk count requests and syncs. But what is on its way when the process is killed may
/// come twice. So it begins with few; each record that is through makes room for one more, and an account's first failure
/// has it begin anew. A process that is killed early has little under way, and one that drains for a second has all that is
/// good for its pace. Who fails occupies the log for as long as that tries, and so has places beside the others', and who
/// fails again has others than those. Nobody knows beforehand who will fail: whoever has been with the log for longer than
/// that may take makes way for others, and goes on beside them.
struct AccountLanes<Newcomer: Equatable> {
  typealias Action = AccountLane<Newcomer>.Action

  /// A lane's turn, and the number of the record to be brought.
  struct Turn {
    let lane: LaneID
    let sequence: Int64
  }

  /// Those whose turn began with as many failures in a row, as `Window` counts them.
  private struct Level {
    /// Whose turn it is.
    var ready = FIFO<LaneID>()
    /// How many the drain has on their way that have not made way for others, and that have.
    var (punctual, late) = (0, 0)
    /// When their turns began, of those that have not made way, and of some that are over.
    var begun = FIFO<(lane: LaneID, since: MonotonicTime)>()
  }

  /// Where a turn counts until it ends: its lane's failures may be others by then.
  private struct Place {
    let level: Int
    let since: MonotonicTime
    var isLate = false
  }

  private let pace: RetryPace
  private let patience: Duration
  private let random: () -> Double
  private var lanes: [LaneID: AccountLane<Newcomer>] = [:]
  private var levels = [Level](repeating: Level(), count: Window.levels)
  private var places: [LaneID: Place] = [:]
  private var backingOff = Heap()
  /// How many may be on their way that did not fail the last time, and have not made way.
  private var width = Window.width.lowerBound

  /// Lanes that are tried again at this pace, and make way for others when the log has had one of their records for as long
  /// as `patience`; `random` is from 0 to 1.
  init(_ pace: RetryPace, patience: Duration, random: @escaping () -> Double) {
    (self.pace, self.patience, self.random) = (pace, patience, random)
  }

  /// How many accounts something is under way of.
  var count: Int { lanes.count }

  /// How many the drain has on their way, by the failures with which their turns began.
  var underWay: [Int] { levels.map { $0.punctual + $0.late } }

  /// When there may be somebody's turn again by the time alone: when the next lane is due that backs off, or somebody makes
  /// way for those whose turn it is. Nil where there is no such time.
  var due: MonotonicTime? {
    var due = backingOff.first?.due
    for level in levels where !level.ready.isEmpty && level.late < Window.late {
      guard let first = level.begun.first else { continue }
      due = min(due ?? .distantFuture, first.since + patience)
    }
    return due
  }

  // MARK: Apple's end

  /// Whether whoever waits for the record that was let in last was told that it is lost, and its place is taken still.
  func isGivenUp(_ id: LaneID) -> Bool { lanes[id]?.arrival?.isGivenUp ?? false }

  /// Lets a new record in, or has it wait: then nothing is to be done.
  mutating func arrive(_ newcomer: Newcomer, in id: LaneID, logIsTrusted: Bool) -> Action? {
    lanes[id, default: AccountLane()].arrive(newcomer, logIsTrusted: logIsTrusted)
  }

  /// The spool has a new record.
  mutating func stored(_ newcomer: Newcomer, as sequence: Int64, in id: LaneID, at now: MonotonicTime) -> Action? {
    let due = retries(at: now)
    return step(id) { $0.stored(newcomer, as: sequence, retryAt: due) }
  }

  // MARK: The log's end

  /// The log did not take a new record, or with nil what the drain brought.
  mutating func failed(_ newcomer: Newcomer?, in id: LaneID, isRefused: Bool, at now: MonotonicTime) -> Action? {
    if newcomer == nil, let lane = lanes[id], lane.head == .inFlight(nil), lane.failures == 0 {
      width = Window.width.lowerBound
    }
    let due = retries(at: now)
    return step(id) { $0.failed(newcomer, isRefused: isRefused, retryAt: due) }
  }

  /// What the log has is gone from the spool.
  mutating func removed(from id: LaneID) {
    if lanes[id]?.head == .leaving(nil) { width = min(width + 1, Window.width.upperBound) }
    let hadFailed = lanes[id].map { $0.failures > 0 } ?? false
    step(id) { $0.removeFirst() }
    if hadFailed { hasten() }
  }

  /// What it was the turn of cannot be read, and stays for ever: nobody waits for it.
  mutating func skip(_ turn: Turn) { endTurn(turn) { $0.removeFirst() } }

  /// Gives back a turn of which nothing came.
  mutating func putBack(_ turn: Turn) { endTurn(turn) { $0.putBack() } }

  private mutating func endTurn(_ turn: Turn, _ body: (inout AccountLane<Newcomer>) -> Void) {
    if lanes[turn.lane]?.head == .inFlight(nil) { step(turn.lane, body) }
  }

  /// Whose turn it is, as far as there is room, and no more than so many.
  mutating func takeTurns(at now: MonotonicTime, limit: Int) -> [Turn] {
    while let first = backingOff.first, first.due <= now { tryAgain() }
    for level in levels.indices { makeWay(in: level, at: now) }
    var turns: [Turn] = []
    while turns.count < limit, let turn = takeTurn(at: now) { turns.append(turn) }
    return turns
  }

  private mutating func takeTurn(at now: MonotonicTime) -> Turn? {
    for level in levels.indices.reversed() {
      let room = level == 0 ? width : Window.ofFailing
      while levels[level].punctual < room, let id = levels[level].ready.popFirst() {
        guard let sequence = step(id, { $0.begin() }) else { continue }
        levels[level].punctual += 1
        levels[level].begun.append((id, now))
        places[id] = Place(level: level, since: now)
        return Turn(lane: id, sequence: sequence)
      }
    }
    return nil
  }

  /// Has those make way for others that the log has had for too long, as far as there is room beside.
  private mutating func makeWay(in level: Int, at now: MonotonicTime) {
    while let first = levels[level].begun.first {
      if let place = places[first.lane], place.level == level, place.since == first.since, !place.isLate {
        guard first.since + patience <= now, levels[level].late < Window.late else { return }
        places[first.lane]?.isLate = true
        levels[level].punctual -= 1
        levels[level].late += 1
      }
      _ = levels[level].begun.popFirst()
    }
  }

  private mutating func leavePlace(_ id: LaneID) {
    guard let place = places.removeValue(forKey: id) else { return }
    if place.isLate { levels[place.level].late -= 1 } else { levels[place.level].punctual -= 1 }
  }

  /// Somebody got through who had failed, or the log is there again: who is due next does not wait for it. If they get
  /// through, it goes on from there.
  mutating func hasten() { for _ in 0..<2 { tryAgain() } }

  private mutating func tryAgain() {
    guard let next = backingOff.popFirst() else { return }
    step(next.lane) { $0.tryAgain(after: next.due) }
  }

  /// Adds what the last run left in the spool.
  mutating func restore(_ sequence: Int64, in id: LaneID) {
    if lanes[id] == nil { levels[0].ready.append(id) }
    lanes[id, default: AccountLane()].restore(sequence)
  }

  /// The spool holds nothing any more.
  mutating func forgetHeld() { for id in lanes.keys { step(id) { $0.forgetHeld() } } }

  // MARK: Beneath

  private func retries(at now: MonotonicTime) -> (_ failures: Int) -> MonotonicTime {
    { [pace, random] failures in now + pace.pause(after: failures, random: random()) }
  }

  /// Steps a lane, ends its turn, files it where its next one is, and lets go of it when it is over.
  @discardableResult
  mutating func step<Value>(_ id: LaneID, _ body: (inout AccountLane<Newcomer>) -> Value?) -> Value? {
    guard let index = lanes.index(forKey: id) else { return nil }
    let before = lanes.values[index].head
    let value = body(&lanes.values[index])
    let (head, failures) = (lanes.values[index].head, lanes.values[index].failures)
    if head != before {
      if head != .leaving(nil) { leavePlace(id) }
      switch head {
      case .ready: levels[Window.level(failures)].ready.append(id)
      case .backingOff(let due): backingOff.insert(Heap.Entry(due: due, lane: id))
      case .empty, .inFlight, .leaving: break
      }
    }
    if lanes.values[index].isOver { lanes.remove(at: index) }
    return value
  }
}

/// How many lanes the drain has on their way at once.
private enum Window {
  /// Of those that did not fail the last time, at the beginning and at most: with 256 a request to a broker had four
  /// records, with 1024 it has fifteen (`Tests/Benchmarks/Sources/drain`). More would keep new records waiting behind them.
  static let width = 64...1024
  /// Of those that failed once, and as many of those that failed again.
  static let ofFailing = 64
  /// Of those that have made way for others, in each of the three.
  static let late = 1024
  static let levels = 3

  /// To which of these a lane belongs that failed so often in a row.
  static func level(_ failures: Int) -> Int { min(failures, levels - 1) }
}

/// Which account's lane: a hash of its key, which is never written down. Two accounts with one hash wait for each other now
/// and then, and notice nothing.
package struct LaneID: Hashable, Sendable {
  private let hash: Int

  /// The lane of the records with this key, or of the one with this value and no key.
  init(of key: [UInt8]) {
    var hasher = Hasher()
    unsafe key.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    hash = hasher.finalize()
  }

  /// A lane of its own.
  init() { hash = .random(in: .min ... .max) }

  /// The lane of a record.
  init(of record: EventRecord) { self.init(of: record.key ?? record.value) }
}

/// Lanes that back off, by when they are due: a binary heap.
private struct Heap {
  struct Entry {
    let due: MonotonicTime
    let lane: LaneID
  }

  private var entries: [Entry] = []

  var first: Entry? { entries.first }

  mutating func insert(_ entry: Entry) {
    var place = entries.count
    entries.append(entry)
    while place > 0, entry.due < entries[(place - 1) / 2].due {
      entries.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  mutating func popFirst() -> Entry? {
    guard let first = entries.first, let last = entries.popLast() else { return nil }
    if entries.isEmpty { return first }
    var place = 0
    while true {
      var child = 2 * place + 1
      if child + 1 < entries.count, entries[child + 1].due < entries[child].due { child += 1 }
      guard child < entries.count, entries[child].due < last.due else { break }
      entries[place] = entries[child]
      place = child
    }
    entries[place] = last
    return first
  }
}
