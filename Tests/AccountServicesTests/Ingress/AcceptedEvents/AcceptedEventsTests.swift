import AccountEvents
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import AccountServices

@Loop @Suite struct AcceptedEventsTests {
  private let folder = TemporaryDirectory()
  private let clock = Clock()
  private let log = CapturedLog()

  /// A clock that a test sets.
  private final class Clock: @unchecked Sendable {
    // @unchecked: only the loop's thread touches it.
    var seconds: Int64 = 1_767_225_600
    var now: Timestamp { Timestamp(seconds: seconds) ?? .now }
  }

  private func open(number: Int, time: Duration = .seconds(3600)) -> AcceptedEvents {
    AcceptedEvents(
      in: folder.path, number: number, time: time, now: { [clock] in clock.now }, logger: log.logger())
  }

  private func mark(
    _ number: Int, on topic: Topic = .accountEvents, team: String = "A1B2C3D4E5", audience: String = "com.example.app"
  ) throws -> AcceptedEvents.Mark {
    AcceptedEvents.Mark(
      of: try #require(EventID(String("jti-\(number)"))), on: topic, team: try #require(TeamID(team)),
      audience: try #require(ClientID(audience)))
  }

  /// Which of the ids from 0 to `count` are known.
  private func known(_ events: AcceptedEvents, of count: Int) throws -> [Int] {
    try (0..<count).filter { events.contains(try mark($0)) }
  }

  @Test func knowsTheLastOnesAndNoMore() async throws {
    let events = open(number: 10)
    for number in 0..<25 { events.insert(try mark(number)) }
    #expect(try known(events, of: 30) == Array(15..<25))
    #expect(events.count == 10)
    await events.close()
  }

  @Test func knowsThemAfterARestartThatNobodyAnnounced() async throws {
    let events = open(number: 10)
    for number in 0..<25 { events.insert(try mark(number)) }
    await events.flush()
    let next = open(number: 10)  // the first was not closed: its process was killed
    #expect(try known(next, of: 30) == Array(15..<25))
    next.insert(try mark(25))
    #expect(try known(next, of: 30) == Array(16..<26))
    for events in [events, next] { await events.close() }
  }

  @Test func theEndWaitsForWhatIsBeingWritten() async throws {
    let number = 100_000
    let events = open(number: number)
    let marks = try (0..<number * 3 / 2).map { try mark($0) }
    for mark in marks[..<(number / 2)] { events.insert(mark) }
    await events.flush()
    // In two pieces, as the ring ends between them.
    for mark in marks[(number / 2)...] { events.insert(mark) }
    let writing = Task(executorPreference: Loop.executor) { await events.flush() }
    await Loop.nextTurn()
    await events.close()
    await writing.value
    let next = open(number: number)
    let known = marks.suffix(number).count(where: next.contains)
    #expect(known == number)
    await next.close()
  }

  @Test(arguments: [4, 10, 11, 40]) func takesOverWhatFitsWhenTheirNumberChanges(_ number: Int) async throws {
    let events = open(number: 10)
    for number in 0..<25 { events.insert(try mark(number)) }
    await events.close()
    for _ in 0..<2 {
      let next = open(number: number)
      #expect(try known(next, of: 30) == Array(max(15, 25 - number)..<25))
      await next.close()
    }
  }

  @Test func forgetsWhenItsTimeIsOver() async throws {
    let events = open(number: 4)
    events.insert(try mark(0))
    clock.seconds += 3599
    events.insert(try mark(1))
    #expect(try known(events, of: 2) == [0, 1])
    clock.seconds += 1
    #expect(try known(events, of: 2) == [1])
    events.insert(try mark(0))
    // The older place of the same event is used again: that must not make it forget the younger one.
    for number in 2..<4 { events.insert(try mark(number)) }
    #expect(try known(events, of: 4) == [0, 1, 2, 3])
    await events.close()
  }

  @Test func whatIsTooOldToBeRememberedMakesNobodyForgotten() async throws {
    let events = open(number: 4)
    for number in 0..<4 { events.insert(try mark(number)) }
    for number in 4..<8 { events.insert(try mark(number), acceptedAt: Timestamp(seconds: clock.seconds - 3600)) }
    #expect(try known(events, of: 8) == [0, 1, 2, 3])
    events.insert(try mark(4), acceptedAt: Timestamp(seconds: clock.seconds - 3599))
    #expect(try known(events, of: 8) == [1, 2, 3, 4])
    await events.close()
  }

  @Test func aClockThatWasSetBackMakesItForgetNothing() async throws {
    let events = open(number: 4)
    events.insert(try mark(0))
    clock.seconds -= 86_400
    #expect(try known(events, of: 1) == [0])
    await events.close()
  }

  @Test func theSameIdElsewhereIsAnotherEvent() async throws {
    let events = open(number: 10)
    events.insert(try mark(0))
    #expect(events.contains(try mark(0)))
    #expect(!events.contains(try mark(0, on: .quarantine)))
    #expect(!events.contains(try mark(0, team: "Z9Y8X7W6V5")))
    #expect(!events.contains(try mark(0, audience: "com.example.web")))
    await events.close()
  }

  @Test func aFileThatCannotBeOpenedIsNoReasonNotToStart() async throws {
    #expect(unsafe mkdir(folder.path + "/accepted-events", 0o700) == 0)
    let events = open(number: 10)
    events.insert(try mark(0))
    #expect(try known(events, of: 2) == [0])
    await events.flush()
    await events.close()
    #expect(log.lines.count == 2 && log.lines.allSatisfy { $0.contains(#""level":"warning""#) }, "\(log.lines)")
  }

  @Test func whateverStandsInTheFileIsNoReasonToFail() async throws {
    var random = SeededRandom()
    for _ in SeededRandom.rounds(50) {
      let bytes = (0..<Int.random(in: 0..<700, using: &random)).map { _ in UInt8.random(in: 0...3, using: &random) }
      _ = folder.write("accepted-events", bytes)
      let events = open(number: 10)
      #expect(try known(events, of: 10).isEmpty, "seed \(random.seed)")
      events.insert(try mark(3))
      await events.close()
      let next = open(number: 10)
      #expect(try known(next, of: 10) == [3], "seed \(random.seed)")
      await next.close()
    }
  }
}
