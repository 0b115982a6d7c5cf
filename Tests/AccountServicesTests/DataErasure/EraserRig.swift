import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// The data eraser behind its processor: scripted targets, a real store, topics and a clock of the test's.
@Loop
final class EraserRig {
  let shop: ScriptedTarget
  let search: ScriptedTarget
  let process: ProcessorRig
  private let watch: ErasureWatch

  nonisolated static let policy = ErasureSettings.Policy(
    consentRevoked: ["search"], accountDelete: ["shop", "search", "account-store"])

  /// A process, on what an earlier one has left; the targets are there still. `policy` is the team's.
  init(after other: EraserRig? = nil, policy: ErasureSettings.Policy = EraserRig.policy) async throws {
    shop = other?.shop ?? ScriptedTarget(holding: 12)
    search = other?.search ?? ScriptedTarget(holding: 3)
    let (shop, search) = (shop, search)
    let team = AccountEvent.sample(1).team
    var made: ErasureWatch?
    process = try await ProcessorRig(beside: other?.process) { surroundings in
      made = ErasureWatch(surroundings.store, registry: surroundings.registry, logger: surroundings.logger)
      let erasures = Erasures(
        [("shop", shop), ("search", search)], store: surroundings.store, concurrency: ProcessorRig.bounds.concurrency,
        registry: surroundings.registry, logger: surroundings.logger, now: surroundings.now,
        clock: surroundings.clock, random: { 1 })
      return DataEraser(
        [team: policy], erasures, groups: ConsentGroups([:]), patience: .seconds(900), store: surroundings.store,
        now: surroundings.now
      ).consumer
    }
    watch = try #require(made)
    try await process.assign(0)
  }

  /// How many erasures are not done, as operators see it.
  func incomplete() async -> String? {
    await watch.look()
    return process.metric("siwa_erasures_incomplete")
  }

  /// How many erasures services are at work on, as operators see it.
  func inProgress() async -> String? {
    await watch.look()
    return process.metric("siwa_erasures_in_progress")
  }

  /// How many events wait for their next attempt for that cause.
  func retrying(_ cause: String) -> String? {
    process.metric("siwa_consumer_retrying{consumer=\"data-eraser\",cause=\"\(cause)\"}")
  }

  /// How many events wait for their next attempt, whatever for.
  var waiting: String? { process.metric("siwa_consumer_waiting{consumer=\"data-eraser\"}") }

  /// What is open, as `siwa erasures list` reads it.
  func open() async throws -> [String] {
    try await process.store.openErasures(by: .dataEraser, after: nil, limit: 10).map {
      "\($0.place.event) \($0.place.target) \($0.state.rawValue) \($0.cause)"
    }
  }

  /// Waits until so many attempts at the first event have failed.
  func untilFailed(_ number: Int) async throws {
    let events = [EventReference.of(.sample(1, .accountDelete), process.store)]
    try await until {
      if case .open(let failed) = try await self.process.peek(events)[0] { failed.count == number } else { false }
    }
    try await process.untilIdle()
  }

  /// Waits until so many outcomes are said. What a process said just before it ended without an order is said again.
  func untilSaid(_ number: Int) async throws {
    try await until { Set(try self.said()).count >= number }
    try await process.untilIdle()
  }

  /// Waits until the group is so far; time passes.
  func untilCommitted(_ offset: Int64) async throws {
    try await until {
      try await self.process.advance(by: .milliseconds(100))
      return self.process.committed() == offset
    }
  }

  /// What was said, and of which events.
  func said() throws -> [String] {
    try process.cluster.appended(on: Topic.outcomes.name).map { record in
      let outcome = try AccountOutcome(decoding: try #require(record.value))
      let targets = outcome.targets.map { "\($0.name) \($0.state)" }.joined(separator: ", ")
      return "\(outcome.cause.id) \(outcome.name.rawValue): \(outcome.reason?.rawValue ?? targets)"
    }
  }

  /// Why events were put aside.
  func deadLetters() -> [String] {
    process.cluster.appended(on: Topic.deadLetters(of: .dataEraser).name).map { record in
      record.headers.last { $0.name == DeadLetter.Header.cause }?.value.map { String(decoding: $0, as: UTF8.self) }
        ?? ""
    }
  }
}
