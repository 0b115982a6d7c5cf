import EventLoop
import TestSupport
import Testing

/// Short trials of all that may break around the consumers: see docs/reliability.md. `make reliability` has long ones.
@Loop @Suite(.serialized, RealBroker.isThere, .disabled(if: LongTrial.isAsked), .timeLimit(.minutes(30)))
struct ConsumerReliabilityTests {
  @Test func eachEventHasOneEffectWhateverBreaks() async throws {
    _ = try await ConsumerTrial.run(
      ConsumerTrial.Plan(
        people: 400, events: 2000, rate: 200, isPostgreSQL: false,
        disruptions: [.oneKilled, .brokerKilled, .auditLogKilled, .diskFull, .targetSilent, .oneEnded],
        lasting: 0.1...0.6))
  }

  @Test(PostgreSQLServer.isThere)
  func theSameWithTheStoreInPostgreSQL() async throws {
    _ = try await ConsumerTrial.run(
      ConsumerTrial.Plan(
        people: 400, events: 2000, rate: 200, isPostgreSQL: true,
        disruptions: [.oneKilled, .brokerFrozen, .databaseGone, .auditLogKilled, .rightMissing, .allKilled],
        lasting: 0.1...0.6))
  }
}

/// The long ones.
@Loop @Suite(.serialized, RealBroker.isThere, .enabled(if: LongTrial.isAsked), .timeLimit(.minutes(120)))
struct ConsumerLongReliabilityTests {
  @Test func eachEventHasOneEffectWhateverBreaks() async throws { try await run(isPostgreSQL: false) }

  @Test func theSameWithTheStoreInPostgreSQL() async throws { try await run(isPostgreSQL: true) }

  private func run(isPostgreSQL: Bool) async throws {
    let events = LongTrial.consumerEvents
    let outcome = try await ConsumerTrial.run(
      ConsumerTrial.Plan(
        people: events / 20, events: events, rate: LongTrial.consumerRate, isPostgreSQL: isPostgreSQL,
        disruptions: ConsumerDisruption.allCases.filter { $0.exists(withPostgreSQL: isPostgreSQL) }, repeats: true,
        lasting: 0.2...5))
    print(outcome.tables)
  }
}
