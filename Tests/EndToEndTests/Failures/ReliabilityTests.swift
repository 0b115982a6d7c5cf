import EventLoop
import TestSupport
import Testing

/// Short trials of all that may break: see docs/reliability.md. `make reliability` has long ones.
@Loop @Suite(.serialized, RealBroker.isThere, .disabled(if: LongTrial.isAsked)) struct ReliabilityTests {
  /// An ingress for which no disk is too slow: one that is busy with other tests holds up what waits for the spool.
  private nonisolated static let patient = ["SIWA_INGRESS_DEADLINES_PUBLISH": "25s"]

  @Test(.timeLimit(.minutes(30)))
  func nothingIsLostWhateverBreaks() async throws {
    let random = SeededRandom()
    try await Trial.run(users: 150, events: 8) { trial in
      try await trial.beginAudit()
      try trial.send(rate: 200, doubts: 20_000, seed: random.seed)
      var schedule = DisruptionSchedule(random, lasting: 0.2...1)
      while try trial.acknowledged < 900 {
        try await trial.run(schedule.next())
        try await trial.killAudit()
      }
      let outcome = try await trial.finish()
      #expect(outcome.verdict.acknowledged == 1200)
      outcome.expectNothingLost("seed \(random.seed)")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func nobodyNoticesThatTheBrokersAreAway() async throws {
    try await Trial.run(users: 200, events: 4, settings: Self.patient) { trial in
      // So slowly that they are not all answered before the brokers are away.
      try trial.send(rate: 50, doubts: 0, seed: 1)
      try await until { try trial.acknowledged > 50 }
      try await trial.awayFor(.seconds(2))
      let outcome = try await trial.finish()
      #expect(outcome.sent.answers == ["200": 800] && outcome.sent.broken + outcome.sent.late == 0)
      outcome.expectNothingLost("the brokers were away")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aFullSpoolAsksAppleToSendAgain() async throws {
    try await Trial.run(users: 200, events: 8, settings: ["SIWA_INGRESS_SPOOL_SIZE": "1MiB"]) { trial in
      try trial.send(rate: 400, doubts: 0, seed: 1)
      try await trial.untilSpoolIsFull()
      let outcome = try await trial.finish()
      #expect(outcome.sent.refused == outcome.sent.answers["503"])
      outcome.expectNothingLost("the spool was full")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aFullDiskAtTheStartHoldsUpNobodyElse() async throws {
    // So many that most are not concerned.
    try await Trial.run(users: 2000, events: 2) { trial in
      try await trial.startOnAFullDisk(rate: 200)
      let outcome = try await trial.finish()
      outcome.expectNothingLost("the disk was full at the start")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func onePartitionMayBeShortOfCopiesForLong() async throws {
    try await Trial.run(users: 100, events: 40, settings: Self.patient) { trial in
      // For 160 seconds: what Kafka's tools do meanwhile takes a tenth of that, and far longer on a busy machine.
      try trial.send(rate: 25, doubts: 0, seed: 1)
      try await trial.onePartitionShort(for: .seconds(20))
      trial.stopSending()
      let outcome = try await trial.finish()
      #expect(outcome.sent.refused == 0, "nobody notices")
      outcome.expectNothingLost("one partition was short of copies")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func oneTopicMayRefuseForLong() async throws {
    try await Trial.run(users: 100, events: 20) { trial in
      try await trial.oneTopicRefuses(for: .seconds(3), rate: 100)
      let outcome = try await trial.finish()
      #expect(outcome.verdict.quarantined > 0)
      outcome.expectNothingLost("the quarantine refused")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aDrainMayBeKilled() async throws {
    try await Trial.run(users: 150, events: 20) { trial in
      try trial.send(rate: 300, doubts: 0, seed: 1)
      try await trial.killDuringTheDrain(times: 2)
      trial.stopSending()
      let outcome = try await trial.finish()
      outcome.expectNothingLost("killed during the drain")
    }
  }
}
