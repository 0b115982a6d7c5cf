import AccountEvents
import AccountStore
import ConsumerSupport
import Cryptography
import EventLoop
import Kafka
import SQLite
import Telemetry
import TestSupport
import Testing

@testable import AccountServices

/// Events of our own on their way to Kafka, whatever is killed when.
@Loop @Suite(.timeLimit(.minutes(30))) struct OutboxPublisherTests {
  @Test func whatWaitsIsPublishedOnceAndInOrder() async throws {
    try await Rig.run { rig in
      for number in 1...300 { try await rig.ask(number) }
      let publisher = rig.publisher("a")
      _ = await publisher.publish()
      #expect(rig.published.sorted() == (1...300).map { "deletion-\($0)" }.sorted())
      #expect(rig.cluster.appended.allSatisfy { $0.topic == Topic.accountEvents.name })
      #expect(rig.metrics.contains("siwa_outbox_published_total 300") && rig.metrics.contains("siwa_outbox_waiting 0"))
    }
  }

  @Test func whileKafkaIsAwayTheyWaitAndAreSaid() async throws {
    try await Rig.run { rig in
      try await rig.ask(1)
      try await rig.ask(2)
      rig.log.fault = { _ in EventLogError(.unavailable, reason: "transport", detail: "as the test wants") }
      let publisher = rig.publisher("a")
      #expect(await publisher.publish() > .zero)
      #expect(rig.metrics.contains("siwa_outbox_waiting 2") && rig.metrics.contains("siwa_outbox_failures_total 1"))
      guard case .replaced(let cause) = await publisher.readiness() else { return #expect(Bool(false), "it is ready") }
      #expect(cause.contains("transport") && cause.contains("2 events wait"), "\(cause)")
      rig.log.fault = { _ in nil }
      _ = await publisher.publish()
      #expect(Set(rig.published) == ["deletion-1", "deletion-2"])
      #expect(await publisher.readiness() == .ready)
    }
  }

  /// What comes of one account stays behind what came before it; others pass.
  @Test func behindOneThatIsNotTakenTheOthersOfItsAccountWait() async throws {
    try await Rig.run { rig in
      try await rig.ask(1)
      try await rig.signIn(1)
      try await rig.ask(2, of: 1)
      try await rig.ask(3)
      rig.log.fault = { record in
        record.headers.contains { $0.value == Array("deletion-1".utf8) }
          ? EventLogError(.uncertain, reason: "timeout", detail: "as the test wants") : nil
      }
      let publisher = rig.publisher("a")
      _ = await publisher.publish()
      #expect(rig.published == ["deletion-3"])
      rig.log.fault = { _ in nil }
      _ = await publisher.publish()
      #expect(rig.published == ["deletion-3", "deletion-1", "deletion-2"])
    }
  }

  /// More wait than are taken at once, for a partition that takes nothing.
  @Test func whatKafkaDoesNotTakeHoldsUpNobodyElse() async throws {
    try await Rig.run { rig in
      for number in 1...600 { try await rig.ask(number) }
      rig.log.fault = { record in
        record.headers.contains { $0.value == Array("deletion-600".utf8) }
          ? nil : EventLogError(.uncertain, reason: "timeout", detail: "as the test wants")
      }
      let publisher = rig.publisher("a")
      #expect(await publisher.publish() > .zero)
      #expect(rig.published == ["deletion-600"] && rig.metrics.contains("siwa_outbox_waiting 599"))
      rig.log.fault = { _ in nil }
      _ = await publisher.publish()
      #expect(Set(rig.published).count == 600 && rig.published.count == 600)
    }
  }

  @Test func whatDoesNotOpenHoldsUpNobodyElseAndIsSaid() async throws {
    try await Rig.run { rig in
      for number in 1...3 { try await rig.ask(number) }
      try rig.damageFirst()
      let publisher = rig.publisher("a")
      _ = await publisher.publish()
      #expect(Set(rig.published) == ["deletion-2", "deletion-3"])
      #expect(rig.metrics.contains("siwa_outbox_damaged 1") && rig.metrics.contains("siwa_outbox_waiting 1"))
    }
  }

  /// Killed before and after each step, and another process takes over.
  @Test(arguments: [WatchedStore.Call.outbox, .takeOutbox, .removeFromOutbox], [true, false])
  func whateverIsKilledWhenNothingIsLost(_ call: WatchedStore.Call, isAfter: Bool) async throws {
    try await Rig.run { rig in
      try await rig.ask(1)
      let failing: WatchedStore.Watch = { made throws(AccountStoreError) in
        if made == call { throw AccountStoreError(.unavailable, "killed") }
      }
      if isAfter { rig.store.after = failing } else { rig.store.before = failing }
      _ = await rig.publisher("a").publish()
      (rig.store.before, rig.store.after) = ({ _ in }, { _ in })
      rig.time = rig.time + .seconds(120)
      let other = rig.publisher("b")
      while try await rig.store.outbox().waiting > 0 { _ = await other.publish() }
      // Twice where Kafka had it, and the store did not know: under the same id.
      let isTwice = call == .removeFromOutbox && !isAfter
      #expect(rig.published == Array(repeating: "deletion-1", count: isTwice ? 2 : 1))
    }
  }

  @Test func anAnswerOfKafkasThatIsLostMakesItComeTwiceUnderOneID() async throws {
    try await Rig.run { rig in
      try await rig.ask(1)
      rig.losesAnswer = true
      let publisher = rig.publisher("a")
      _ = await publisher.publish()
      #expect(rig.published == ["deletion-1"])
      #expect(try await rig.store.outbox().waiting == 1)
      rig.losesAnswer = false
      _ = await publisher.publish()
      #expect(rig.published == ["deletion-1", "deletion-1"])
      #expect(try await rig.store.outbox().waiting == 0)
    }
  }

  @Test func onlyOneOfTwoProcessesPublishesUntilItEnds() async throws {
    try await Rig.run { rig in
      try await rig.ask(1)
      let (one, other) = (rig.publisher("a"), rig.publisher("b"))
      rig.log.fault = { _ in EventLogError(.unavailable, reason: "transport", detail: "as the test wants") }
      _ = await one.publish()
      rig.log.fault = { _ in nil }
      _ = await other.publish()
      #expect(rig.published.isEmpty)
      await one.drain()
      _ = await other.publish()
      #expect(rig.published == ["deletion-1"])
    }
  }

  @Test func aDrainPublishesWhatItCan() async throws {
    try await Rig.run { rig in
      let publisher = rig.publisher("a")
      try await rig.ask(1)
      await publisher.drain()
      #expect(rig.published == ["deletion-1"])
    }
  }

  @Test func whatIsWrittenIsPublishedAtOnce() async throws {
    try await Rig.run { rig in
      let publisher = rig.publisher("a")
      let running = Task(executorPreference: Loop.executor) { await publisher.run() }
      try await until { rig.store.counts[.outbox, default: 0] > 0 }
      for number in 1...3 {
        try await rig.ask(number)
        publisher.wake()
        try await until { rig.published.count == number }
      }
      await publisher.drain()
      await running.value
    }
  }
}

/// A store, a log, and who wants to be deleted.
@Loop
private final class Rig {
  let cluster = MemoryCluster()
  let log: ClusterLog
  let store: WatchedStore
  private let file: StoreOfTests
  /// Of the publisher that was made last.
  private var registry = MetricsRegistry()
  private let answers: LosingLog
  var time = Timestamp.now

  static func run(_ body: @Loop (Rig) async throws -> Void) async throws {
    let file = StoreOfTests()
    let rig = Rig(try await file.open(), file)
    try await body(rig)
    await rig.store.close()
  }

  private init(_ store: any AccountStore, _ file: StoreOfTests) {
    self.file = file
    log = ClusterLog(cluster)
    answers = LosingLog(log)
    self.store = WatchedStore(store)
  }

  var losesAnswer: Bool {
    get { answers.losesAnswer }
    set { answers.losesAnswer = newValue }
  }

  var metrics: String { String(decoding: registry.render(), as: UTF8.self) }

  /// The ids on the topic.
  var published: [String] {
    cluster.appended.compactMap { record in
      record.headers.first { $0.name == "ce_id" }.map { String(decoding: $0.value ?? [], as: UTF8.self) }
    }
  }

  func publisher(_ holder: String) -> OutboxPublisher {
    registry = MetricsRegistry()
    return OutboxPublisher(
      store, answers, holder: holder, random: { 1 }, now: { [time] in time }, registry: registry,
      logger: Logger(level: .error, format: .text))
  }

  func signIn(_ number: Int) async throws {
    time = time + .seconds(1)
    _ = try await store.recordSignIn(try account(number), at: time, tokens: [], of: nil)
  }

  /// The person `number`, or `person`, asks for their deletion.
  func ask(_ number: Int, of person: Int? = nil) async throws {
    if person == nil { try await signIn(number) }
    let id = try #require(EventID("deletion-\(number)"))
    let deletion = try await store.requestDeletion(
      of: try account(person ?? number), in: try #require(ClientID("com.example.app")), as: id, at: time)
    try #require(deletion?.id == id)
  }

  /// Changes the sealed record of the event that was written first.
  func damageFirst() throws {
    let database = try Database(file.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(5))
    try database.execute("UPDATE outbox SET record = zeroblob(64) WHERE number = 1")
  }

  private func account(_ number: Int) throws -> Account {
    Account(team: try #require(TeamID("A1B2C3D4E5")), subject: try #require(AppleSubject("person-\(number)")))
  }
}

/// A log whose answers may be lost.
@Loop
private final class LosingLog: EventLog {
  var losesAnswer = false
  private let log: ClusterLog

  init(_ log: ClusterLog) { self.log = log }

  func append(_ record: EventRecord, then report: @escaping ClusterLog.Report) {
    append(KafkaRecord(record), then: report)
  }

  func append(_ record: KafkaRecord, then report: @escaping ClusterLog.Report) {
    log.append(record) { [losesAnswer] result in
      report(losesAnswer ? .failure(EventLogError(.uncertain, reason: "timeout", detail: "lost")) : result)
    }
  }

  func check() async throws(EventLogError) {
    try await log.check()
  }

  func close(within patience: Duration) async { await log.close(within: patience) }
}
