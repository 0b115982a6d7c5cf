import EventLoop
import Foundation
import TestSupport
import Testing

/// The long trials of `make reliability`: see docs/reliability.md.
@Loop @Suite(.serialized, RealBroker.isThere, .enabled(if: LongTrial.isAsked)) struct LongReliabilityTests {
  @Test(.timeLimit(.minutes(240)))
  func nothingIsLostWhateverBreaks() async throws {
    let random = SeededRandom()
    let (users, events) = (LongTrial.notifications / LongTrial.events, LongTrial.events)
    try await Trial.run(users: users, events: events) { trial in
      trial.tell("seed \(random.seed), \(users) users with \(events) events each, \(LongTrial.rate) a second")
      try await trial.beginAudit()
      try trial.send(rate: LongTrial.rate, doubts: 5000, seed: random.seed)
      var schedule = DisruptionSchedule(random, lasting: 2...15)
      let end = users * events / 100 * 97
      while try trial.acknowledged < end {
        try await trial.run(schedule.next())
        try await trial.killAudit()
      }
      let outcome = try await trial.finish()
      trial.tell("all was read\n\(outcome.tables)")
      #expect(outcome.verdict.acknowledged == users * events)
      outcome.expectNothingLost("seed \(random.seed)")
      // What comes twice comes with the faults: there are some of those in a trial of a few events, too.
      #expect(outcome.verdict.twice <= max(100, outcome.verdict.acknowledged / 1000))
      #expect(outcome.slowestRecovery <= .seconds(30))
      #expect(outcome.memory.growth < 32)
    }
  }

  @Test(.timeLimit(.minutes(60)))
  func nobodyNoticesThatTheBrokersAreAwayForAMinute() async throws {
    let rate = min(LongTrial.rate, 1000)
    // Nothing closes a connection meanwhile: a request that crosses with that is one that nobody answers.
    let settings = ["SIWA_INGRESS_DEADLINES_IDLE": "300s"]
    try await Trial.run(users: rate * 2, events: 50, settings: settings) { trial in
      trial.tell("the brokers are away for a minute, at \(rate) a second")
      try trial.send(rate: rate, doubts: 0, seed: 1)
      try await trial.pass(.seconds(5))
      try await trial.awayFor(.seconds(60))
      trial.stopSending()
      let outcome = try await trial.finish()
      trial.tell("all was read\n\(outcome.tables)")
      #expect(outcome.sent.refused + outcome.sent.broken + outcome.sent.late == 0)
      outcome.expectNothingLost("the brokers were away")
    }
  }

  @Test(.timeLimit(.minutes(60)))
  func aFullSpoolAsksAppleToSendAgain() async throws {
    try await Trial.run(users: 1000, events: 20, settings: ["SIWA_INGRESS_SPOOL_SIZE": "4MiB"]) { trial in
      trial.tell("the spool is full")
      try trial.send(rate: LongTrial.rate, doubts: 0, seed: 1)
      try await trial.untilSpoolIsFull()
      let outcome = try await trial.finish()
      trial.tell("all was read\n\(outcome.tables)")
      outcome.expectNothingLost("the spool was full")
    }
  }

  @Test(.timeLimit(.minutes(60)))
  func aDrainMayBeKilledTwentyTimes() async throws {
    try await Trial.run(users: 2000, events: 50) { trial in
      trial.tell("killed during the drain")
      try trial.send(rate: min(LongTrial.rate, 500), doubts: 0, seed: 1)
      try await trial.killDuringTheDrain(times: 20)
      trial.stopSending()
      let outcome = try await trial.finish()
      trial.tell("all was read\n\(outcome.tables)")
      outcome.expectNothingLost("killed during the drain")
    }
  }
}
