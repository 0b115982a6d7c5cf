import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// Apple fails, or we do: one effect, and nothing missing.
@Loop @Suite(.timeLimit(.minutes(30))) struct RevocationFailureTests {
  private let whole = ["event-20 tokens-revoked", "event-20 sessions-ended"]

  @Test(arguments: [TokensAnswer.lost, .failedLate])
  func anAnswerThatIsLostAfterAppleActedIsAskedForAgain(_ answer: TokensAnswer) async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      rig.apple.revocationsAnswer = answer
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilFailed(answer == .lost ? "apple-interrupted" : "apple-unavailable")
      #expect(!rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app), "Apple has acted")
      #expect(try rig.said().isEmpty)
      #expect(try await rig.tokens().count == 1)
      rig.apple.revocationsAnswer = .tokens
      rig.process.alarm.advance(by: .seconds(1))
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      #expect(try rig.said() == whole)
      #expect(rig.apple.revocationsAsked == 2 && rig.asked == 3, "validated once")
    }
  }

  @Test func aValidationWhoseAnswerIsLostIsMadeAgain() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      rig.apple.tokensAnswer = .lost
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilFailed("apple-interrupted")
      rig.apple.tokensAnswer = .tokens
      rig.process.alarm.advance(by: .seconds(1))
      try await rig.process.untilDone(1)
      #expect(try rig.said() == whole)
    }
  }

  @Test func aCrashBetweenRevocationAndSettlementIsMadeGoodByTheNextProcess() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      rig.apple.tokensDelay = .seconds(3600)
      try rig.happen(.accountDeletionRequested, 20)
      try await until { rig.asked == 2 }  // revoked, and the validation has no answer
      try await rig.restart()
      #expect(!rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app))
      #expect(try rig.said().isEmpty)
      rig.apple.tokensDelay = .zero
      try rig.happen(.consentRevoked, 21)
      try await rig.process.untilDone(2)
      #expect(rig.process.done == ["tokens-revoked": 1, "echo": 1])
      #expect(try rig.said() == whole + ["event-21 no-effect: echo"])
      #expect(rig.apple.revocationsAsked == 2)
    }
  }

  @Test func appleDownForAnHourHoldsUpOnlyWhoNeedsIt() async throws {
    try await RevokerRig.run { rig in
      let names = ["bob", "cleo", "dora", "emil", "fay", "gil"]
      for name in ["ada"] + names { try await rig.signIn(name, at: 10) }
      rig.apple.revocationsAnswer = .unavailable
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilFailed("apple-unavailable")
      for minute in 1...60 {
        let failed = rig.process.failed.values.reduce(0, +)
        rig.process.alarm.advance(by: .seconds(60))
        try await until { rig.process.failed.values.reduce(0, +) > failed }
        if minute % 10 == 0 {
          try rig.happen(.consentRevoked, 20 + minute, to: names[minute / 10 - 1])
          try await rig.process.untilDone(minute / 10)
        }
      }
      #expect(rig.process.done == ["tokens-revoked": 6])
      #expect(rig.process.deadLetters.isEmpty)
      #expect(rig.captured.lines.contains { $0.contains("an event cannot be processed, and is tried again and again") })
      #expect(try await rig.tokens().count == 1)

      rig.apple.revocationsAnswer = .tokens
      rig.process.alarm.advance(by: .seconds(60))
      try await rig.process.untilDone(7)
      #expect(try rig.said().suffix(2) == whole[...])
      #expect(try await rig.tokens().isEmpty)
    }
  }

  @Test func appleIsNotAskedByAnybodyWhileItFailsTooOften() async throws {
    try await RevokerRig.run { rig in
      let names = ["ada", "bob", "cleo", "dora", "emil", "fay", "gil", "hal"]
      for name in names { try await rig.signIn(name, at: 10) }
      rig.apple.revocationsAnswer = .unavailable
      for (number, name) in names.enumerated() {
        try rig.happen(.accountDeletionRequested, 20, to: name, id: "event-\(name)")
        if number == 4 { try await rig.process.untilFailed("apple-unavailable", 5) }
      }
      try await rig.process.untilFailed("apple-paused", 3)
      #expect(rig.asked == 5)
      rig.apple.revocationsAnswer = .tokens
      try await until {
        rig.process.alarm.advance(by: .seconds(60))
        return rig.process.done == ["tokens-revoked": names.count]
      }
      try await rig.process.untilDone(names.count)
      #expect(rig.process.done == ["tokens-revoked": names.count])
    }
  }

  @Test func appleIsLeftAloneForAsLongAsItAsks() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn("bob", at: 10)
      rig.apple.revocationsAnswer = .throttled  // for 30 seconds
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilFailed("apple-throttled")
      rig.apple.revocationsAnswer = .tokens
      try rig.happen(.accountDeletionRequested, 21, to: "bob")
      try await rig.process.untilFailed("apple-paused")
      rig.process.alarm.advance(by: .milliseconds(29_999))
      await turn()
      #expect(rig.asked == 1)
      for _ in 1...3 {
        rig.process.alarm.advance(by: .seconds(1))
        await turn()
      }
      try await until {
        rig.process.alarm.advance(by: .seconds(1))
        return rig.process.done == ["tokens-revoked": 2]
      }
    }
  }

  @Test func aKeyThatAppleDoesNotAcceptIsTheOperatorsAndTheEventWaitsForIt() async throws {
    try await RevokerRig.run { rig in
      let key = try rig.apple.enroll(team: RevokerRig.team, clients: [RevokerRig.app])
      try await rig.restart(key)
      try await rig.signIn(at: 10)
      rig.apple.withdrawKey(key.id)
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilFailed("apple-invalid-client")
      for attempt in 2...20 {
        let failed = rig.process.failed.values.reduce(0, +)
        rig.process.alarm.advance(by: .seconds(60))
        try await until { rig.process.failed.values.reduce(0, +) > failed }
        #expect(rig.process.done.isEmpty && rig.process.deadLetters.isEmpty, "attempt \(attempt)")
      }
      let alarms = rig.captured.lines.filter { $0.contains("until an operator has put it right") }
      #expect(alarms.count > 1 && alarms.allSatisfy { $0.contains("com.example.app") })
      #expect(try await rig.tokens().count == 1)
      #expect(rig.cluster.appended(on: Topic.deadLetters(of: .tokenRevoker).name).isEmpty)

      try await rig.restart(try rig.apple.enroll(team: RevokerRig.team, clients: [RevokerRig.app]))
      try await rig.process.untilDone(1)
      #expect(try rig.said() == whole)
    }
  }

  /// What Apple does not take, trying again does not help: a person has to look, and nobody else waits for it.
  @Test func whatAppleRefusesIsADeadLetterAndNothingElseStops() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn("bob", at: 10)
      rig.apple.revocationsAnswer = .refused
      try rig.happen(.accountDeletionRequested, 20)
      try await until { rig.process.deadLetters == ["other": 1] }
      rig.apple.revocationsAnswer = .tokens
      try rig.happen(.accountDeletionRequested, 21, to: "bob")
      try await rig.process.untilDone(1)
      let letters = rig.cluster.appended(on: Topic.deadLetters(of: .tokenRevoker).name)
      #expect(letters.count == 1)
      #expect(letters.first?.headers.contains(KafkaHeader("dead-letter-cause", "apple-invalid-request")) == true)
      #expect(try rig.said() == ["event-21 tokens-revoked", "event-21 sessions-ended"])
      #expect(try await rig.tokens().count == 1, "it is there for whoever decides")
    }
  }
}
