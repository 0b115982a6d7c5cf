import EventLoop
import Testing

@testable import AccountServices

/// Each step of the table above `AccountLane`.
@Suite struct AccountLaneTests {
  typealias Lane = AccountLane<Int>

  /// What happens to a lane. The records 1, 2, … get the numbers 11, 12, … in the spool.
  enum Step: Sendable {
    case arrive(Int, trusted: Bool = true)
    case late(Int)
    case overdue(Int)
    case stored(Int)
    case notStored(Int, isLate: Bool = false, isOrdered: Bool = true)
    case acknowledged(Int?)
    case failed(Int?, isRefused: Bool = false)
    case begin
    case removed
    case tryAgain
  }

  /// A row: after these steps, what this one says is to be done, and what it leaves.
  struct Row: Sendable, CustomTestStringConvertible {
    let before: [Step]
    let step: Step
    var action: String?
    var arrival: Lane.Arrival.State?
    var head = Lane.Head.empty

    var testDescription: String { "\(step) after \(before)" }
  }

  private static let later = MonotonicTime(nanoseconds: 1000)

  private static func take(_ step: Step, _ lane: inout Lane) -> String? {
    var action: Lane.Action?
    switch step {
    case .arrive(let record, let trusted): action = lane.arrive(record, logIsTrusted: trusted)
    case .late(let record): action = lane.runOutOfPatience(with: record)
    case .overdue(let record): action = lane.runOutOfTime(for: record)
    case .stored(let record): action = lane.stored(record, as: Int64(record) + 10) { _ in later }
    case .notStored(let record, let isLate, let isOrdered):
      action = lane.notStored(record, isLate: isLate, isOrdered: isOrdered)
    case .acknowledged(let record): action = lane.acknowledged(record)
    case .failed(let record, let isRefused): action = lane.failed(record, isRefused: isRefused) { _ in later }
    case .begin: return lane.begin().map { "bring \($0)" }
    case .removed: lane.removeFirst()
    case .tryAgain: lane.tryAgain(after: later)
    }
    return switch action {
    case .append(let record): "append \(record)"
    case .store(let record): "store \(record)"
    case .answer(let record, let answer): "answer \(record): \(answer)"
    case .remove(let sequence): "remove \(sequence)"
    case nil: nil
    }
  }

  static let rows: [Row] = [
    // The way of nearly all records.
    Row(before: [], step: .arrive(1), action: "append 1", arrival: .publishing),
    Row(before: [.arrive(1)], step: .acknowledged(1), action: "answer 1: published"),
    // The log fails.
    Row(before: [.arrive(1)], step: .failed(1), action: "store 1", arrival: .failed),
    Row(before: [.arrive(1), .failed(1)], step: .late(1), arrival: .failed),
    Row(
      before: [.arrive(1), .failed(1)], step: .stored(1), action: "answer 1: spooled",
      head: .backingOff(until: later)),
    Row(before: [.arrive(1), .failed(1)], step: .notStored(1), action: "answer 1: lost"),
    // The log is late.
    Row(before: [.arrive(1)], step: .late(1), action: "store 1", arrival: .late),
    Row(before: [.arrive(1), .late(1)], step: .late(1), arrival: .late),
    Row(before: [.arrive(1), .late(1)], step: .acknowledged(1), action: "answer 1: published", arrival: .acknowledged),
    Row(before: [.arrive(1), .late(1)], step: .failed(1), arrival: .failed),
    Row(before: [.arrive(1), .late(1)], step: .stored(1), action: "answer 1: spooled", head: .inFlight(1)),
    Row(before: [.arrive(1), .late(1)], step: .notStored(1), arrival: .unspooled),
    Row(before: [.arrive(1), .late(1)], step: .notStored(1, isLate: true), action: "answer 1: lost"),
    Row(before: [.arrive(1), .late(1), .notStored(1)], step: .acknowledged(1), action: "answer 1: published"),
    Row(before: [.arrive(1), .late(1), .notStored(1)], step: .failed(1), action: "answer 1: lost"),
    Row(before: [.arrive(1), .late(1), .notStored(1)], step: .overdue(1), action: "answer 1: lost"),
    Row(before: [.arrive(1), .late(1), .notStored(1), .overdue(1)], step: .acknowledged(1)),
    // Neither says anything in time: whoever waits is told, and the place stays taken.
    Row(before: [.arrive(1)], step: .overdue(1), action: "answer 1: lost", arrival: .publishing),
    Row(before: [.arrive(1), .overdue(1)], step: .late(1), arrival: .publishing),
    Row(before: [.arrive(1), .overdue(1)], step: .acknowledged(1)),
    Row(before: [.arrive(1), .overdue(1)], step: .failed(1)),
    Row(before: [.arrive(1), .late(1)], step: .overdue(1), action: "answer 1: lost", arrival: .late),
    Row(before: [.arrive(1), .late(1), .overdue(1)], step: .stored(1), head: .inFlight(1)),
    Row(before: [.arrive(1), .late(1), .overdue(1)], step: .notStored(1)),
    Row(before: [.arrive(1), .late(1), .overdue(1)], step: .acknowledged(1), arrival: .acknowledged),
    Row(
      before: [.arrive(1), .late(1), .overdue(1), .acknowledged(1)], step: .stored(1), action: "remove 11",
      head: .leaving(1)),
    Row(before: [.arrive(1), .late(1), .overdue(1)], step: .failed(1), arrival: .failed),
    Row(
      before: [.arrive(1), .failed(1), .overdue(1)], step: .stored(1), head: .backingOff(until: later)),
    Row(before: [.arrive(1, trusted: false)], step: .overdue(1), action: "answer 1: lost", arrival: .spooling),
    Row(before: [.arrive(1, trusted: false), .overdue(1)], step: .stored(1), head: .ready),
    Row(before: [.arrive(1, trusted: false), .overdue(1)], step: .notStored(1)),
    Row(before: [.arrive(1), .arrive(2)], step: .overdue(2), action: "answer 2: lost", arrival: .publishing),
    // The log has it before the spool does.
    Row(
      before: [.arrive(1), .late(1), .acknowledged(1)], step: .stored(1), action: "remove 11", head: .leaving(1)),
    Row(before: [.arrive(1), .late(1), .acknowledged(1)], step: .notStored(1)),
    // The spool has it before the log does.
    Row(before: [.arrive(1), .late(1), .stored(1)], step: .acknowledged(1), action: "remove 11", head: .leaving(1)),
    Row(before: [.arrive(1), .late(1), .stored(1)], step: .failed(1), head: .backingOff(until: later)),
    Row(before: [.arrive(1), .late(1), .stored(1)], step: .begin, head: .inFlight(1)),
    Row(
      before: [.arrive(1), .late(1), .stored(1)], step: .arrive(2), action: "store 2", arrival: .spooling,
      head: .inFlight(1)),
    // The log is not trusted.
    Row(before: [], step: .arrive(1, trusted: false), action: "store 1", arrival: .spooling),
    Row(before: [.arrive(1, trusted: false)], step: .stored(1), action: "answer 1: spooled", head: .ready),
    Row(before: [.arrive(1, trusted: false)], step: .notStored(1), action: "append 1", arrival: .unspooled),
    // Something is held.
    Row(before: [.arrive(1, trusted: false), .stored(1)], step: .begin, action: "bring 11", head: .inFlight(nil)),
    Row(
      before: [.arrive(1, trusted: false), .stored(1)], step: .arrive(2), action: "store 2", arrival: .spooling,
      head: .ready),
    Row(
      before: [.arrive(1, trusted: false), .stored(1), .arrive(2)], step: .notStored(2), action: "answer 2: lost",
      head: .ready),
    Row(
      before: [.arrive(1, trusted: false), .stored(1), .arrive(2)], step: .notStored(2, isOrdered: false),
      action: "append 2", arrival: .unspooled, head: .ready),
    Row(
      before: [.arrive(1, trusted: false), .stored(1), .begin, .acknowledged(nil), .arrive(2), .removed],
      step: .notStored(2), action: "append 2", arrival: .unspooled),
    // The drain.
    Row(
      before: [.arrive(1, trusted: false), .stored(1), .begin], step: .acknowledged(nil), action: "remove 11",
      head: .leaving(nil)),
    Row(
      before: [.arrive(1, trusted: false), .stored(1), .begin], step: .failed(nil), head: .backingOff(until: later)),
    Row(before: [.arrive(1, trusted: false), .stored(1), .begin], step: .begin, head: .inFlight(nil)),
    Row(before: [.arrive(1, trusted: false), .stored(1), .begin, .acknowledged(nil)], step: .removed),
    Row(before: [.arrive(1, trusted: false), .stored(1), .begin], step: .removed),
    Row(before: [.arrive(1, trusted: false), .stored(1), .begin, .failed(nil)], step: .tryAgain, head: .ready),
    Row(
      before: [.arrive(1, trusted: false), .stored(1), .begin, .failed(nil)], step: .begin,
      head: .backingOff(until: later)),
    Row(
      before: [
        .arrive(1, trusted: false), .stored(1), .arrive(2), .stored(2), .begin, .acknowledged(nil), .removed,
      ], step: .begin, action: "bring 12", head: .inFlight(nil)),
    // Whoever comes while another one is let in waits.
    Row(before: [.arrive(1)], step: .arrive(2), arrival: .publishing),
  ]

  @Test(arguments: rows) func aStepSaysWhatIsToBeDoneAndLeadsWhereTheTableSays(_ row: Row) {
    var lane = Lane()
    for step in row.before { _ = Self.take(step, &lane) }
    #expect(Self.take(row.step, &lane) == row.action)
    #expect(lane.arrival?.state == row.arrival)
    #expect(lane.head == row.head)
  }

  @Test func whoeverWaitsIsLetInOneByOneInTheirOrder() {
    var lane = Lane()
    for record in 1...3 { _ = lane.arrive(record, logIsTrusted: true) }
    #expect(lane.next() == nil)
    for record in 1...3 {
      #expect(lane.acknowledged(record) == .answer(record, .published))
      let next = lane.next()
      #expect(next == (record < 3 ? record + 1 : nil))
      if let next { #expect(lane.arrive(next, logIsTrusted: true) == .append(next)) }
    }
    #expect(lane.isOver)
  }

  @Test func whoeverIsToldThatItIsLostIsNotLetIn() {
    var lane = Lane()
    for record in 1...3 { _ = lane.arrive(record, logIsTrusted: true) }
    #expect(lane.runOutOfTime(for: 2) == .answer(2, .lost))
    _ = lane.acknowledged(1)
    #expect(lane.next() == 3)
  }

  @Test func eachFailureInARowCountsAndWhatIsRefusedCountsAsMany() {
    var lane = Lane()
    var seen: [Int] = []
    func due(_ failures: Int) -> MonotonicTime {
      seen.append(failures)
      return Self.later
    }
    _ = lane.arrive(1, logIsTrusted: false)
    _ = lane.stored(1, as: 11, retryAt: due)
    for isRefused in [false, false, true, false] {
      lane.tryAgain(after: Self.later)
      _ = lane.begin()
      _ = lane.failed(nil, isRefused: isRefused, retryAt: due)
    }
    #expect(seen[0...1] == [1, 2] && seen[2] > 10 && seen[3] > seen[2])
    lane.tryAgain(after: Self.later)
    _ = lane.begin()
    _ = lane.acknowledged(nil)
    lane.removeFirst()
    #expect(lane.failures == 0 && lane.isOver)
  }
}
