import AccountEvents
import AccountStore
import EventLoop
import Foundation
import TestSupport
import Testing

/// A consumer that is killed at every step that it makes, and begun anew.
@Loop @Suite(.timeLimit(.minutes(30))) struct KilledConsumerTests {
  /// What is said in the end, in the order in which it is said of each account.
  private static let said = [
    "event-1 revoked", "event-1 ended", "event-2 revoked", "event-2 ended", "event-10 revoked", "event-10 ended",
  ]

  @Test func whereverItIsKilledEachEventHasOneEffectAndNoneIsMissing() async throws {
    var step = 1
    while try await isKilled(at: [step, 0]) { step += 1 }
    #expect(step > 40, "there are fewer steps than there should be")
  }

  @Test func whoeverIsKilledTwiceIsNotDifferent() async throws {
    var (step, random) = (1, SeededRandom())
    while try await isKilled(at: [step, Int.random(in: 1...40, using: &random), 0]) { step += 5 }
  }

  /// Runs the consumer to its end, killing it at these steps of one process after the other. Says whether the first was.
  private func isKilled(at steps: [Int]) async throws -> Bool {
    let directory = TemporaryDirectory()
    let key = try #require(MasterKey([UInt8](repeating: 7, count: 32)))
    try await SQLiteAccountStore.begin("\(directory.path)/siwa.db", key)
    var ends: [RunningProgram.End] = []
    for step in steps {
      let end = try await RunningProgram.run("killed-consumer", [directory.path, String(step), "sample"], [:]) {
        program in
        try await program.untilEnd()
      }
      ends.append(end)
      if end == .exit(0) { break }
      #expect(end == .signal(SIGKILL), "step \(step)")
    }
    try #require(ends.last == .exit(0))
    let comment: Comment = "killed at \(steps)"
    let lines = try String(contentsOfFile: "\(directory.path)/said", encoding: .utf8).split(separator: "\n")
    let outcomes = lines.filter { $0.hasPrefix("apple.account-outcomes.v1 ") }.map { String($0.dropFirst(26)) }
    // A kill between the acknowledgement and the next mark says the same again, at most once a kill.
    let kills = ends.count - 1
    let expected = [1, 2, 3, 7, 8, 10].flatMap { ["event-\($0) revoked", "event-\($0) ended"] }
    // The sixth is void, and that is said in the same way.
    let others = Set(outcomes).subtracting(expected)
    let reasons = try others.map { try AccountOutcome(decoding: Array($0.utf8)) }
    #expect(reasons.map(\.cause.id.text) == ["event-6"] && Set(outcomes).isSuperset(of: expected), comment)
    #expect(reasons.first?.reason == .supersededByNewerEvent && reasons.first?.consumer == "killed", comment)
    for text in expected + others { #expect(outcomes.count { $0 == text } <= 1 + kills, comment) }
    var seen: Set<String> = []
    let ofAda = outcomes.filter { Self.said.contains($0) && seen.insert($0).inserted }
    #expect(ofAda == Self.said, comment)
    let letters = lines.filter { $0.hasPrefix("apple.account-events.killed.dead-letters.v1 ") }
    for number in [4, 9] {
      let count = letters.count { $0.contains("event-\(number)\"") }
      #expect(1...1 + kills ~= count, comment)
    }
    let effects = try String(contentsOfFile: "\(directory.path)/effects", encoding: .utf8).split(separator: "\n")
    for (number, count) in [(1, 1), (2, 1), (3, 3), (4, 1), (7, 1), (8, 3), (9, 1), (10, 1)] {
      #expect(count...count + kills ~= effects.count { $0 == "event-\(number)" }, "event-\(number) \(comment)")
    }
    #expect(!effects.contains("event-5") && !effects.contains("event-6"), comment)
    #expect(try String(contentsOfFile: "\(directory.path)/committed", encoding: .utf8) == "10\n", comment)
    return ends.first != .exit(0)
  }
}
