import AccountEvents
import AccountServices
import EventLoop
import Foundation
import TestSupport
import Testing

/// What was accepted survives the process, wherever between two steps it is killed.
@Loop @Suite(.serialized) struct PublicationKillTests {
  private let folder = TemporaryDirectory()

  /// Each life kills itself at one of its steps: an answer, an append, a report.
  @Test(.timeLimit(.minutes(30)))
  func whatWasAnsweredForStandsOnTheLogInItsOrderWhateverIsKilled() async throws {
    var random = SeededRandom()
    let writer = RunningProgram.path(of: "durable-writer")
    for step in SeededRandom.rounds(12).map({ _ in Int.random(in: 1...600, using: &random) }) + [0] {
      let life = try await RunningProgram.finish(path: writer, ["publish", folder.path, "\(step)"])
      try #require(
        life.end == (step == 0 ? .exit(0) : .signal(SIGKILL)) && life.errors == "", "seed \(random.seed): \(life)")
    }
    let (log, answered) = (try lines("log"), try lines("answered"))
    #expect(answered.count > 100)
    for person in 0..<12 {
      let published = log.filter { $0.hasPrefix("\(person)-") }
      let once = published.indices.filter { $0 == 0 || published[$0] != published[$0 - 1] }.map { published[$0] }
      #expect(once == once.indices.map { "\(person)-\($0)" }, "seed \(random.seed): not in order, or with a gap")
      #expect(once.count >= answered.count { $0.hasPrefix("\(person)-") }, "seed \(random.seed): lost")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func whatIsWrittenDownOfAcceptedEventsIsKnownWhateverIsKilled() async throws {
    var random = SeededRandom()
    for round in SeededRandom.rounds(10) {
      let first = round * 1_000_000
      var last = 0
      try await RunningProgram.run("durable-writer", ["accepted", folder.path, "\(first)"]) { writer in
        _ = try await writer.outputLine(with: "written \(first + Int.random(in: 0...60, using: &random) * 7 + 6)")
        try await writer.killAndRead()
        #expect(writer.errors == "")
        let lines = writer.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        last = try #require(lines.last.flatMap { Int($0.split(separator: " ")[1]) })
      }
      let events = AcceptedEvents(
        in: folder.path, number: 1000, time: .seconds(86_400), now: { .now }, logger: CapturedLog().logger())
      let known = try (max(first, last - 900)...last).filter { events.contains(try mark($0)) }
      #expect(known.count == last - max(first, last - 900) + 1, "seed \(random.seed): written down and not known")
      #expect(try !events.contains(mark(first + 999_999)))
      await events.close()
    }
  }

  private func mark(_ number: Int) throws -> AcceptedEvents.Mark {
    AcceptedEvents.Mark(
      of: try #require(EventID("event-\(number)")), on: .accountEvents, team: try #require(TeamID("A1B2C3D4E5")),
      audience: try #require(ClientID("com.example.app")))
  }

  private func lines(_ name: String) throws -> [String] {
    try String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8).split(separator: "\n").map(String.init)
  }
}
