import AccountEvents
import AccountServices
import EventLoop
import Telemetry
import TestSupport
import Testing

/// A publisher over a log in a test's hand and a real spool.
@Loop
final class PublisherRig {
  /// So short that a test does not wait for it.
  nonisolated static let pace = RetryPace(first: .milliseconds(1), longest: .milliseconds(4))

  let log = MemoryLog()
  let lines = CapturedLog()
  let registry = MetricsRegistry()
  private(set) var spool: Spool
  private(set) var publisher: EventPublisher
  private let folder: TemporaryDirectory
  private let patience, deadline, spoolPatience: Duration
  private let limit: Int

  /// Runs `body` while the spool is drained, then closes everything.
  static func run(
    patience: Duration = .seconds(600), deadline: Duration = .seconds(600), spoolPatience: Duration = .seconds(600),
    limit: Int = 1 << 30, drains: Bool = true, _ body: @Loop (PublisherRig) async throws -> Void
  ) async throws {
    let rig = try await PublisherRig(
      patience: patience, deadline: deadline, spoolPatience: spoolPatience, limit: limit, pace: pace,
      in: TemporaryDirectory())
    try await rig.whileDraining(drains, body)
  }

  /// Ends this one and runs `body` with another one over the same spool, as the next run of a program. Its log may hold
  /// all from the beginning; at another `pace` who failed is not tried again as soon.
  func again(
    holding: Bool = false, pace: RetryPace = pace, _ body: @Loop (PublisherRig) async throws -> Void
  ) async throws {
    await publisher.close(by: .now)
    let next = try await PublisherRig(
      patience: patience, deadline: deadline, spoolPatience: spoolPatience, limit: limit, pace: pace, in: folder)
    if holding { next.log.hold() }
    try await next.whileDraining(true, body)
  }

  private init(
    patience: Duration, deadline: Duration, spoolPatience: Duration, limit: Int, pace: RetryPace,
    in folder: TemporaryDirectory
  ) async throws {
    (self.patience, self.deadline, self.spoolPatience) = (patience, deadline, spoolPatience)
    (self.limit, self.folder) = (limit, folder)
    spool = try await Spool.open(
      directory: folder.path, limit: limit, now: { .now }, registry: registry, logger: lines.logger())
    let accepted = AcceptedEvents(
      in: folder.path, number: 1000, time: .seconds(3600), now: { .now }, logger: lines.logger())
    publisher = try await EventPublisher(
      log: log, spool: spool, accepted: accepted, patience: patience, deadline: deadline,
      spoolPatience: spoolPatience, pace: pace, metrics: PublicationMetrics(registry), logger: lines.logger())
  }

  private func whileDraining(_ drains: Bool, _ body: @Loop (PublisherRig) async throws -> Void) async throws {
    try await withThrowingTaskGroup { group in
      if drains { group.addTask(executorPreference: Loop.executor) { [publisher] in await publisher.drain() } }
      let result: Result<Void, any Error>
      do { result = .success(try await body(self)) } catch { result = .failure(error) }
      await publisher.close(by: .now)
      try result.get()
    }
  }

  /// Publishes event `number` of `person`, and says what became of it.
  @discardableResult
  func publish(_ person: String, _ number: Int) async throws -> EventPublisher.Acceptance {
    let (team, audience) = (try #require(TeamID("A1B2C3D4E5")), try #require(ClientID("com.example.app")))
    let id = try #require(EventID(String("\(person)-\(number)")))
    return try await publisher.publish(
      Self.record(person, number),
      as: AcceptedEvents.Mark(of: id, on: .accountEvents, team: team, audience: audience))
  }

  /// Publishes an event as Apple signed it.
  @discardableResult
  func publish(_ event: AccountEvent) async throws -> EventPublisher.Acceptance {
    try await publisher.publish(
      EventRecord(event, jws: Array("what Apple signed".utf8)),
      as: AcceptedEvents.Mark(of: event.id, on: .accountEvents, team: event.team, audience: event.audience))
  }

  /// The same of event `number` of `person`, while the test goes on.
  func publishing(_ person: String, _ number: Int) -> Task<EventPublisher.Acceptance, any Error> {
    Task(executorPreference: Loop.executor) { try await self.publish(person, number) }
  }

  /// The value of a metric, as it is rendered.
  func metric(_ name: String) -> String? { registry.value(of: name) }

  /// What stands on the log, as `person-number`.
  var published: [String] { log.records.map { String(decoding: $0.value, as: UTF8.self) } }

  /// Where the spool is.
  var spoolDirectory: String { folder.path }
  /// The spool's database.
  var spoolFile: String { spoolDirectory + "/spool.sqlite" }

  /// Waits until the spool is empty.
  func untilDrained() async throws { try await until { spool.depth == 0 } }

  private static func record(_ person: String, _ number: Int) -> EventRecord {
    EventRecord(
      topic: .accountEvents, key: Array(person.utf8), value: Array("\(person)-\(number)".utf8),
      headers: [("ce_id", "\(person)-\(number)"), ("ce_team", "A1B2C3D4E5"), ("ce_audience", "com.example.app")].map {
        EventRecord.Header(name: $0.0, value: Array($0.1.utf8))
      })
  }
}
