import EventLoop
import TestSupport
import Testing

/// Short trials of a transfer; `make reliability` has long ones.
@Loop @Suite(.serialized, .disabled(if: LongTrial.isAsked), .timeLimit(.minutes(30)))
struct MigrationReliabilityTests {
  @Test func everyUserEndsInOneAccountOrOnAListOfRefusals() async throws { try await run(isPostgreSQL: false) }

  @Test(PostgreSQLServer.isThere)
  func theSameWithTheStoresInPostgreSQL() async throws { try await run(isPostgreSQL: true) }

  private func run(isPostgreSQL: Bool) async throws {
    let trial = MigrationTrial(
      users: 400, kills: 3, rate: 300, concurrency: 16, retryAfter: .seconds(1), isPostgreSQL: isPostgreSQL)
    try await trial.run()
  }
}

/// The long ones.
@Loop @Suite(.serialized, .enabled(if: LongTrial.isAsked), .timeLimit(.minutes(240)))
struct MigrationLongReliabilityTests {
  @Test func everyUserEndsInOneAccountOrOnAListOfRefusals() async throws { try await run(isPostgreSQL: false) }

  @Test(PostgreSQLServer.isThere)
  func theSameWithTheStoresInPostgreSQL() async throws { try await run(isPostgreSQL: true) }

  private func run(isPostgreSQL: Bool) async throws {
    let trial = MigrationTrial(
      users: LongTrial.transferredUsers, kills: 10, rate: 1000, concurrency: 64, retryAfter: .seconds(30),
      isPostgreSQL: isPostgreSQL)
    try await trial.run()
  }
}
