import AccountEvents
import EventLoop
import TestSupport
import Testing

@testable import AccountServices

/// Whose turn it is, without a loop, a log or a disk.
@Suite struct AccountLanesTests {
  private static let pace = RetryPace(first: .milliseconds(250), longest: .seconds(30))
  private static let patience = Duration.seconds(200)
  private static let start = MonotonicTime(nanoseconds: 0)

  private static func id(_ account: Int) -> LaneID { LaneID(of: Array("\(account)".utf8)) }

  /// Lanes with a record each of so many accounts, whose numbers are those of the accounts.
  private static func lanes(of accounts: Range<Int>) -> AccountLanes<Int> {
    var lanes = AccountLanes<Int>(pace, patience: patience) { 1 }
    for account in accounts { lanes.restore(Int64(account), in: id(account)) }
    return lanes
  }

  /// Has all fail whose turn it is, one after the other.
  private static func fail(
    _ turns: [AccountLanes<Int>.Turn], _ lanes: inout AccountLanes<Int>, at now: inout MonotonicTime
  ) {
    for turn in turns {
      _ = lanes.failed(nil, in: turn.lane, isRefused: false, at: now)
      now = now + .milliseconds(1)
    }
  }

  /// Has all fail twice, and their next tries be due.
  private static func failTwice(_ lanes: inout AccountLanes<Int>, at now: inout MonotonicTime) {
    for _ in 0..<2 {
      while case let turns = lanes.takeTurns(at: now, limit: 1000), !turns.isEmpty { fail(turns, &lanes, at: &now) }
      now = now + .seconds(60)
    }
  }

  @Test func anAccountIsTriedWhenItsOwnNextTryIsDueAndNotBefore() {
    var lanes = Self.lanes(of: 0..<1)
    var now = Self.start
    for wait in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
      let turns = lanes.takeTurns(at: now, limit: 10)
      #expect(turns.map(\.sequence) == [0])
      var then = now
      Self.fail(turns, &lanes, at: &then)
      #expect(lanes.due == now + .milliseconds(wait))
      #expect(lanes.takeTurns(at: now + .milliseconds(wait - 1), limit: 10).isEmpty)
      now = now + .milliseconds(wait)
    }
  }

  @Test func whoKeepsFailingHasPlacesOfItsOwnAndNobodyElseWaitsForThem() {
    var lanes = Self.lanes(of: 0..<100)
    var now = Self.start
    Self.failTwice(&lanes, at: &now)
    // All hundred failed twice and are due, and those that failed first are under way for long.
    let again = lanes.takeTurns(at: now, limit: 1000)
    #expect(again.map(\.sequence) == Array(0..<64))
    // Others fail once: they have as many places, and who never failed has others again.
    for account in 100..<200 { lanes.restore(Int64(account), in: Self.id(account)) }
    for _ in 0..<2 { Self.fail(lanes.takeTurns(at: now, limit: 50), &lanes, at: &now) }
    now = now + .seconds(60)
    #expect(lanes.takeTurns(at: now, limit: 1000).map(\.sequence) == Array(100..<164))
    for account in 200..<300 { lanes.restore(Int64(account), in: Self.id(account)) }
    #expect(lanes.takeTurns(at: now, limit: 1000).map(\.sequence) == Array(200..<264))
    // And who failed longest ago is next, as soon as there is room.
    Self.fail([again[0]], &lanes, at: &now)
    #expect(lanes.takeTurns(at: now, limit: 1000).map(\.sequence) == [64])
  }

  /// After a restart, the accounts of a partition that is down may be the first in the spool.
  @Test func whomTheLogKeepsForTooLongMakesWayForOthers() {
    var lanes = Self.lanes(of: 0..<1200)
    var (now, kept) = (Self.start, [AccountLanes<Int>.Turn]())
    while case let turns = lanes.takeTurns(at: now, limit: 2000), !turns.isEmpty {
      #expect(turns.map(\.sequence) == (0..<64).map { $0 + Int64(kept.count) })
      kept += turns
      // Nobody else is tried before, and then somebody is.
      #expect(lanes.takeTurns(at: now + (Self.patience - .nanoseconds(1)), limit: 2000).isEmpty)
      #expect(lanes.due == (kept.count <= 1024 ? now + Self.patience : nil))
      now = now + Self.patience
    }
    // There are limits to it.
    #expect(kept.count == 1024 + 64 && lanes.underWay == [1024 + 64, 0, 0])
    // Each of them that comes back makes room for another one that has been with the log for too long, and that for others.
    Self.fail(Array(kept.prefix(10)), &lanes, at: &now)
    #expect(lanes.takeTurns(at: now, limit: 2000).map(\.sequence) == Array(1088..<1098))
    #expect(lanes.underWay == [1024 + 64, 0, 0])
  }

  @Test func whoFailsAgainAndAgainAndIsKeptForTooLongMakesWayForOthersThatFailed() {
    var lanes = Self.lanes(of: 0..<200)
    var now = Self.start
    Self.failTwice(&lanes, at: &now)
    for first in [0, 64, 128] {
      #expect(lanes.takeTurns(at: now, limit: 200).first?.sequence == Int64(first))
      now = now + Self.patience
    }
    #expect(lanes.underWay == [0, 0, 192])
  }

  @Test func whoGetsThroughAfterFailingTakesTheNextOnesAlong() {
    var lanes = Self.lanes(of: 0..<8)
    var now = Self.start
    Self.fail(lanes.takeTurns(at: now, limit: 8), &lanes, at: &now)
    #expect(lanes.takeTurns(at: now, limit: 8).isEmpty)
    // The log is there again; each that gets through hastens two.
    lanes.hasten()
    var order: [Int] = []
    while case let turns = lanes.takeTurns(at: now, limit: 8), !turns.isEmpty {
      order.append(turns.count)
      for turn in turns {
        #expect(lanes.step(turn.lane) { $0.acknowledged(nil) } == .remove(turn.sequence))
        lanes.removed(from: turn.lane)
      }
    }
    #expect(order == [2, 4, 2] && lanes.count == 0)
  }

  /// A record without order overtakes the oldest one of its lane on its way, and resets the lane's failures meanwhile.
  @Test func placesAreFreeAgainWhateverBecameOfALanesFailuresMeanwhile() {
    var lanes = Self.lanes(of: 0..<64)
    var now = Self.start
    for _ in 0..<2 {
      Self.fail(lanes.takeTurns(at: now, limit: 64), &lanes, at: &now)
      now = now + .seconds(60)
    }
    let turns = lanes.takeTurns(at: now, limit: 64)
    #expect(turns.count == 64)
    for (newcomer, turn) in zip(1000..., turns) {
      #expect(lanes.arrive(newcomer, in: turn.lane, logIsTrusted: true) == .store(newcomer))
      let action = lanes.step(turn.lane) { $0.notStored(newcomer, isLate: false, isOrdered: false) }
      #expect(action == .append(newcomer))
      #expect(lanes.step(turn.lane) { $0.acknowledged(newcomer) } == .answer(newcomer, .published))
      #expect(lanes.step(turn.lane) { $0.acknowledged(nil) } == .remove(turn.sequence))
      lanes.removed(from: turn.lane)
    }
    #expect(lanes.count == 0 && lanes.underWay == [0, 0, 0])
    // Who fails twice is tried again.
    lanes.restore(1, in: Self.id(1))
    for _ in 0..<2 {
      Self.fail(lanes.takeTurns(at: now, limit: 64), &lanes, at: &now)
      now = now + .seconds(60)
    }
    #expect(lanes.takeTurns(at: now, limit: 64).map(\.sequence) == [1])
  }

  /// A log, a spool and people at random, against what must be true of any of them.
  @Test func whateverHappensInWhateverOrderNothingIsLostNorOvertakenAndNobodyStarves() {
    var random = SeededRandom()
    for _ in SeededRandom.rounds(60) {
      var world = World(seed: random.next())
      for _ in 0..<1500 { world.step() }
      world.settle()
      for failure in world.failures { Issue.record("seed \(random.seed): \(failure)") }
    }
  }
}

/// A log and a spool that do what they like, one thing after another.
private struct World {
  private struct Record: Hashable {
    let account: Int
    let number: Int
  }
  private struct Flight {
    let record: Int
    /// Nil where the drain has brought it.
    let newcomer: Int?
  }

  private(set) var failures: [String] = []
  private var random: SeededRandom
  private var lanes: AccountLanes<Int>
  private var now = MonotonicTime(nanoseconds: 0)
  /// All records that ever came, by their index.
  private var records: [Record] = []
  private var ids: [LaneID: Int] = [:]
  private var flights: [Flight] = []
  private var writing: [Int] = []
  private var removing: [Int64] = []
  private var patient: [Int] = []
  /// What the spool holds: the record of each number.
  private var held: [Int64: Int] = [:]
  private var lastSequence: Int64 = 0
  private var log: [Int] = []
  /// What could not be read, and was given up.
  private var unreadable: Set<Int> = []
  private var answers: [Int: AccountLane<Int>.Answer] = [:]
  private var isHealthy = false
  private static let accounts = 30
  /// Their records never get anywhere, until all is well.
  private static let dead = 0..<12

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    var source = SeededRandom(seed: seed &+ 1)
    lanes = AccountLanes(RetryPace(first: .milliseconds(250), longest: .seconds(30)), patience: .seconds(2)) {
      Double.random(in: 0.5...1, using: &source)
    }
    for account in 0..<Self.accounts { ids[Self.id(account)] = account }
  }

  private static func id(_ account: Int) -> LaneID { LaneID(of: Array("\(account)".utf8)) }

  mutating func step() {
    switch Int.random(in: 0..<12, using: &random) {
    case 0, 1:
      let account = Int.random(in: 0..<Self.accounts, using: &random)
      records.append(Record(account: account, number: records.count))
      let isTrusted = Int.random(in: 0..<3, using: &random) > 0
      perform(lanes.arrive(records.count - 1, in: Self.id(account), logIsTrusted: isTrusted), account)
    case 2, 3, 4: if !flights.isEmpty { land(Int.random(in: 0..<flights.count, using: &random)) }
    case 5, 6: write()
    case 7, 8: remove()
    case 9: if !patient.isEmpty { losePatience(Int.random(in: 0..<patient.count, using: &random)) }
    case 10: now = now + .milliseconds(Int.random(in: 0..<2000, using: &random))
    default: drain(failing: true)
    }
  }

  /// Has all go well: first for those who are not dead, then for all.
  mutating func settle() {
    for healthy in [false, true] {
      isHealthy = healthy
      for _ in 0..<3000 {
        drain()
        // Dead ones are with the log for ten seconds, about.
        for flight in flights where !isDead(flight.record) || Int.random(in: 0..<100, using: &random) == 0 {
          land(flights.firstIndex { $0.record == flight.record } ?? 0)
        }
        write()
        remove()
        now = now + .milliseconds(100)
      }
      while let next = patient.indices.first { losePatience(next) }
      let left = held.values.filter { healthy || !isDead($0) }
      if !left.isEmpty { failures.append("\(left.count) starve, \(healthy ? "all" : "the dead") being well") }
    }
    for account in 0..<Self.accounts { check(account) }
    if lanes.count > 0 { failures.append("\(lanes.count) lanes are not over") }
    if lanes.underWay.contains(where: { $0 != 0 }) { failures.append("\(lanes.underWay) are still under way") }
  }

  private mutating func check(_ account: Int) {
    let published = log.filter { records[$0].account == account }
    let once = published.indices.filter { $0 == 0 || published[$0] != published[$0 - 1] }.map { published[$0] }
    if once != Array(Set(once)).sorted() { failures.append("account \(account) is out of order: \(once)") }
    for (record, answer) in answers where records[record].account == account && answer != .lost {
      if !once.contains(record), !unreadable.contains(record) { failures.append("\(record) was \(answer) and is lost") }
    }
    let all = records.indices.filter { records[$0].account == account }
    if all.contains(where: { answers[$0] == nil }) { failures.append("nobody was answered") }
  }

  private func isDead(_ record: Int) -> Bool { !isHealthy && Self.dead.contains(records[record].account) }

  private mutating func perform(_ action: AccountLanes<Int>.Action?, _ account: Int) {
    switch action {
    case .append(let record):
      flights.append(Flight(record: record, newcomer: record))
      patient.append(record)
    case .store(let record): writing.append(record)
    case .answer(let record, let answer):
      if answers.updateValue(answer, forKey: record) != nil { failures.append("\(record) is answered twice") }
    case .remove(let sequence): removing.append(sequence)
    case nil: break
    }
    guard let next = lanes.step(Self.id(account), { $0.next() }) else { return }
    perform(lanes.arrive(next, in: Self.id(account), logIsTrusted: isHealthy), account)
  }

  /// Takes turns; where reading fails now and then, some are given back, and a few are of what can never be read.
  private mutating func drain(failing: Bool = false) {
    for turn in lanes.takeTurns(at: now, limit: Int.random(in: 1...100, using: &random)) {
      guard let record = held[turn.sequence] else {
        failures.append("\(turn.sequence) is not held")
        continue
      }
      if flights.contains(where: {
        records[$0.record].account == records[record].account && answers[$0.record] != .lost
      }) {
        failures.append("two of an account are on their way")
      }
      switch failing ? Int.random(in: 0..<20, using: &random) : 20 {
      case 0..<3: lanes.putBack(turn)
      case 3:
        lanes.skip(turn)
        held[turn.sequence] = nil
        unreadable.insert(record)
      default: flights.append(Flight(record: record, newcomer: nil))
      }
    }
  }

  /// The log takes records of an account in the order in which it was given them.
  private mutating func land(_ index: Int) {
    let account = records[flights[index].record].account
    guard let first = flights.firstIndex(where: { records[$0.record].account == account }) else { return }
    let flight = flights.remove(at: first)
    let fails = isDead(flight.record) || !isHealthy && Int.random(in: 0..<3, using: &random) == 0
    if !fails || !isDead(flight.record) && Bool.random(using: &random) { log.append(flight.record) }
    perform(
      fails
        ? lanes.failed(flight.newcomer, in: Self.id(account), isRefused: false, at: now)
        : lanes.step(Self.id(account)) { $0.acknowledged(flight.newcomer) }, account)
  }

  private mutating func write() {
    guard !writing.isEmpty else { return }
    let record = writing.removeFirst()
    let account = records[record].account
    if !isHealthy, Int.random(in: 0..<6, using: &random) == 0 {
      let isLate = Bool.random(using: &random)
      let action = lanes.step(Self.id(account)) { $0.notStored(record, isLate: isLate, isOrdered: true) }
      return perform(action, account)
    }
    lastSequence += 1
    held[lastSequence] = record
    perform(lanes.stored(record, as: lastSequence, in: Self.id(account), at: now), account)
  }

  private mutating func remove() {
    guard !removing.isEmpty else { return }
    let sequence = removing.removeFirst()
    guard let record = held.removeValue(forKey: sequence) else {
      failures.append("\(sequence) leaves twice")
      return
    }
    if !log.contains(record) { failures.append("\(record) leaves the spool and is not on the log") }
    let account = records[record].account
    lanes.removed(from: Self.id(account))
    perform(nil, account)
  }

  private mutating func losePatience(_ index: Int) {
    let record = patient.remove(at: index)
    let (account, id) = (records[record].account, Self.id(records[record].account))
    perform(lanes.step(id) { $0.runOutOfPatience(with: record) }, account)
    if Bool.random(using: &random) { perform(lanes.step(id) { $0.runOutOfTime(for: record) }, account) }
  }
}
