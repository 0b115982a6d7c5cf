import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import EventLoop
import Kafka
import TestSupport
import Testing
import TransparencyLog

/// Deletions, and what the consumers say of each, put onto their topics beside the log that is tried. Every seventh record
/// stands there twice.
@Loop
final class AuditTraffic {
  /// The events that are on their topic.
  private(set) var events: Set<EventID> = []
  /// The outcomes that are on theirs.
  private(set) var outcomes: Set<AccountOutcome> = []
  /// How many entries a log has to have of them.
  var entryCount: Int { events.count + outcomes.count }

  private let stage: ConsumerStage
  private let producer: Producer
  private var count = 0
  private var streaming: Task<Void, any Error>?

  /// Runs `body` beside a broker of its own, where nothing has come yet.
  static func run(
    in files: TemporaryDirectory, _ body: @Loop (ConsumerStage, AuditTraffic) async throws -> Void
  ) async throws {
    let (_, _, side) = try ConsumerTrial.makeApple(in: files)
    try await ConsumerStage.run(try await RealBroker(), side, in: files) { stage in
      try await body(stage, try AuditTraffic(stage))
    }
  }

  private init(_ stage: ConsumerStage) throws {
    self.stage = stage
    producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", stage.broker.bootstrapServers)]),
      deadline: .seconds(300), log: { _ in })
  }

  /// Puts so many deletions onto their topic, with all outcomes, and returns once the broker has them.
  func put(_ number: Int) async throws {
    var records: [KafkaRecord] = []
    for _ in 0..<number {
      let event = AccountEvent.sample("event-\(count)", .accountDelete, of: Person(named: "holder \(count)"), at: count)
      count += 1
      events.insert(event.id)
      records.append(KafkaRecord(of: event))
      for (consumer, name) in [
        ("token-revoker", .tokensRevoked), ("token-revoker", .sessionsEnded), ("data-eraser", .accountErased),
        ("email-relay", .relayChanged),
      ] as [(String, AccountOutcome.Name)] {
        let outcome = AccountOutcome(
          account: stage.store.hash(of: event.account), name: name, cause: AccountOutcome.Cause(event),
          consumer: consumer, doneAt: .now)
        outcomes.insert(outcome)
        records.append(KafkaRecord(EventRecord(outcome)))
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (place, record) in records.enumerated() {
        for _ in 0..<(place % 7 == 3 ? 2 : 1) {
          group.addTask(executorPreference: Loop.executor) { [producer] in _ = try await producer.send(record) }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Begins to put a few there again and again, until `stop`.
  func stream() {
    streaming = Task { @Loop [weak self] in
      while !Task.isCancelled, let self {
        try await put(2)
        try await Loop.sleep(for: .milliseconds(30))
      }
    }
  }

  /// Puts nothing more there, and waits until the broker has what was begun.
  func stop() async throws {
    streaming?.cancel()
    do { try await streaming?.value } catch is CancellationError { streaming = nil }
    _ = await producer.close(within: .seconds(300))
  }

  /// Everything is in the log once, and the log continues all that a reader was ever shown.
  func expectAll(seenBy reader: CheckpointReader, _ comment: Comment? = nil) async throws {
    try await reader.stop()
    try await reader.expectContinued(by: stage.auditLog)
    try await AuditLogContents(of: stage.auditLog, stage.auditKey.key).expect(events, outcomes, comment)
  }
}
