import EventLoop
import TestSupport
import Testing

/// Short trials of all that may break: see docs/reliability.md. `make reliability` has long ones.
@Loop @Suite(.serialized, RealBroker.isThere, .disabled(if: LongTrial.isAsked)) struct ReliabilityTests {
  @Test(.timeLimit(.minutes(10)))
  func nothingIsLostWhateverBreaks() async throws {
    let random = SeededRandom()
    try await Trial.run(users: 200, events: 8) { trial in
      try trial.send(rate: 200, doubts: 0, seed: random.seed)
      var schedule = DisruptionSchedule(random, lasting: 0.2...1)
      while try trial.acknowledged < 1200 { try await trial.run(schedule.next()) }
      let outcome = try await trial.finish()
      #expect(outcome.verdict.acknowledged == 1600)
      outcome.expectNothingLost("seed \(random.seed)")
    }
  }
}
