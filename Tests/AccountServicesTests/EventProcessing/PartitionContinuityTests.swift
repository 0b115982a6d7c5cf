import AccountServices
import Kafka
import TestSupport
import Testing

/// Whether what was read of a partition, and what it holds, are one row of records.
@Suite struct PartitionContinuityTests {
  @Test func recordsThatFollowOneAnotherAreNothingToTellAndANoteRemembersTheNewest() {
    var place = PartitionContinuity()
    #expect(place.note.isEmpty)
    // The brokers' clocks differ by a little.
    for (offset, time) in [(5, 50), (6, 60), (7, 58)] as [(Int64, Int64)] {
      #expect(place.read(offset, time: time) == .goesOn)
    }
    #expect(place.next == 8 && place.newest == 60 && place.times == [50, 60])
    let next = PartitionContinuity(CommittedOffset(7, note: place.note))
    #expect(next.next == 7 && next.newest == 60 && next.times == [50, 60])
    for foreign in ["", "by hand", "1 2", "1 2 x", "1  2", "1 -3 2", "1 2 -3", "-1 2 2"] {
      #expect(PartitionContinuity(CommittedOffset(7, note: foreign)).times.isEmpty)
    }
  }

  @Test func aMarkThatWasNotCheckedSinceIsHandedOn() {
    // Read on from another topic's fourth record, and gone before anybody has compared.
    var place = PartitionContinuity(CommittedOffset(3, note: "3 30 30"))
    _ = place.read(3, time: 70)
    var next = PartitionContinuity(CommittedOffset(4, note: place.note))
    #expect(
      next.compare(with: PartitionExtent(first: 0, end: 4, firstNewer: [30: 0])) == .begunAnew(at: 0, expected: 4))
  }

  @Test func aHoleIsMissingAndAStepBackABeginning() {
    var place = PartitionContinuity(CommittedOffset(4))
    #expect(place.read(6, time: nil) == .missing(4..<6))
    #expect(place.read(7, time: nil) == .goesOn)
    #expect(place.read(3, time: nil) == .begunAnew(at: 3, expected: 8))
    #expect(place.read(4, time: nil) == .goesOn)
  }

  @Test func aStepBackThatWasReadIsNotFoundAgain() {
    var place = PartitionContinuity(CommittedOffset(9, note: "9 90 90"))
    #expect(place.read(0, time: 100) == .begunAnew(at: 0, expected: 9))
    #expect(place.times == [100])
    #expect(place.compare(with: PartitionExtent(first: 0, end: 3, firstNewer: [100: 1])) == .goesOn)
  }

  @Test func whatWasReadOfAnotherTopicSinceDoesNotHideIt() {
    var place = PartitionContinuity(CommittedOffset(3, note: "3 30 30"))
    _ = place.read(3, time: 70)
    #expect(place.newest == 70 && place.times == [30, 70])
    var then = place
    _ = place.read(4, time: 80)
    #expect(then.compare(with: PartitionExtent(first: 0, end: 4, firstNewer: [30: 3])) == .goesOn)
    place.isCompared(as: then)
    #expect(place.times == [70, 80])
    #expect(
      place.compare(with: PartitionExtent(first: 0, end: 9, firstNewer: [70: 0, 80: 2]))
        == .begunAnew(at: 0, expected: 5))
    #expect(place.next == 0)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let committed: CommittedOffset?
    let extent: PartitionExtent
    let finding: PartitionContinuity.Finding
    let next: Int64
  }

  private static let noted = CommittedOffset(10, note: "10 100 100")

  nonisolated static let cases = [
    Case(
      testDescription: "nothing new", committed: noted, extent: PartitionExtent(first: 0, end: 10, firstNewer: [:]),
      finding: .goesOn, next: 10),
    Case(
      testDescription: "new records", committed: noted,
      extent: PartitionExtent(first: 3, end: 20, firstNewer: [100: 10]),
      finding: .goesOn, next: 10),
    Case(
      testDescription: "new records, some as old as what was read", committed: noted,
      extent: PartitionExtent(first: 3, end: 20, firstNewer: [100: 12]), finding: .goesOn, next: 10),
    Case(
      testDescription: "all that was read is deleted", committed: noted,
      extent: PartitionExtent(first: 10, end: 10, firstNewer: [:]), finding: .goesOn, next: 10),
    Case(
      testDescription: "retention was quicker", committed: noted,
      extent: PartitionExtent(first: 15, end: 20, firstNewer: [100: 15]), finding: .missing(10..<15), next: 15),
    Case(
      testDescription: "retention has left nothing", committed: noted,
      extent: PartitionExtent(first: 15, end: 15, firstNewer: [:]), finding: .missing(10..<15), next: 15),
    Case(
      testDescription: "made anew, with fewer records", committed: noted,
      extent: PartitionExtent(first: 0, end: 4, firstNewer: [100: 0]), finding: .begunAnew(at: 0, expected: 10), next: 0
    ),
    Case(
      testDescription: "made anew, with none", committed: noted,
      extent: PartitionExtent(first: 0, end: 0, firstNewer: [:]), finding: .begunAnew(at: 0, expected: 10), next: 0),
    Case(
      testDescription: "made anew, with more records", committed: noted,
      extent: PartitionExtent(first: 0, end: 30, firstNewer: [100: 0]), finding: .begunAnew(at: 0, expected: 10),
      next: 0),
    Case(
      testDescription: "has lost its end, and got another", committed: noted,
      extent: PartitionExtent(first: 0, end: 30, firstNewer: [100: 7]), finding: .begunAnew(at: 0, expected: 10),
      next: 0),
    Case(
      testDescription: "has lost its end, and got another; what was checked lies behind what is done",
      committed: CommittedOffset(3, note: "10 100 100"),
      extent: PartitionExtent(first: 2, end: 30, firstNewer: [100: 7]), finding: .begunAnew(at: 2, expected: 3),
      next: 2),
    Case(
      testDescription: "nothing committed", committed: nil,
      extent: PartitionExtent(first: 3, end: 30, firstNewer: [:]), finding: .begins(at: 3), next: 3),
    Case(
      testDescription: "committed by somebody without a note", committed: CommittedOffset(10, note: "by hand"),
      extent: PartitionExtent(first: 0, end: 30, firstNewer: [:]), finding: .goesOn, next: 10),
  ]

  @Test(arguments: cases) func aPlaceIsComparedWithWhatThePartitionHolds(_ example: Case) {
    var place = PartitionContinuity(example.committed)
    #expect(place.compare(with: example.extent) == example.finding)
    #expect(place.next == example.next)
  }

  /// A topic, of which records go at both ends, is made anew and read at any pace: what is told is what is so.
  @Test func tellsEveryLossAndEveryBeginningAndNothingElse() {
    for _ in SeededRandom.rounds(50) {
      var random = SeededRandom()
      var log: [(id: Int, time: Int64)] = []
      var (first, nextID, time, lives) = (Int64(0), 0, Int64(0), 0)
      var place = PartitionContinuity(CommittedOffset(0))
      var (read, missed): (Set<Int>, Set<Int>) = ([], [])
      var owed: Set<Int> = []
      var begun = 0
      for _ in 0..<400 {
        let end = first + Int64(log.count)
        switch Int.random(in: 0..<8, using: &random) {
        case 0...3:
          time += Int64.random(in: 1...3, using: &random)
          log.append((nextID, time))
          owed.insert(nextID)
          nextID += 1
        case 4 where random.next() % 4 == 0:
          // Records that nobody has read yet may be among those that go.
          let count = Int.random(in: 0...log.count, using: &random)
          for record in log.prefix(count) where owed.remove(record.id) != nil { missed.insert(record.id) }
          log.removeFirst(count)
          first += Int64(count)
        case 5 where random.next() % 8 == 0:
          // What is lost with a topic, or with its end, is nobody's to tell of; what follows is.
          let kept = random.next() % 2 == 0 ? 0 : Int.random(in: 0...log.count, using: &random)
          for record in log.dropFirst(kept) { owed.remove(record.id) }
          (log, first, lives) = (Array(log.prefix(kept)), kept == 0 ? 0 : first, lives + 1)
        default:
          // Whoever has the partition next.
          if let next = place.next { place = PartitionContinuity(CommittedOffset(next, note: place.note)) }
          var newer: [Int64: Int64] = [:]
          for time in place.times {
            newer[time] = log.firstIndex { $0.time > time }.map { first + Int64($0) }
          }
          let extent = PartitionExtent(first: first, end: end, firstNewer: newer)
          let knowsNoTime = place.times.isEmpty
          if case .begunAnew = place.compare(with: extent) { begun += 1 }
          // Who has read nothing by then cannot tell a topic from another one that holds more than was skipped.
          if knowsNoTime {
            for index in log.indices where first + Int64(index) < place.next ?? 0 { owed.remove(log[index].id) }
          }
          for index in log.indices where first + Int64(index) >= place.next ?? 0 {
            #expect(place.read(first + Int64(index), time: log[index].time) == .goesOn, "SEED=\(random.seed)")
            read.insert(log[index].id)
            owed.remove(log[index].id)
          }
          #expect(owed.isEmpty, "SEED=\(random.seed)")
        }
      }
      #expect(begun <= lives, "SEED=\(random.seed)")
      #expect(read.isDisjoint(with: missed), "SEED=\(random.seed)")
    }
  }
}
