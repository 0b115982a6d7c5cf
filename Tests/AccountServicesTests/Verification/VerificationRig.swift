import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// A consumer that verifies events, behind its processor; the topic of Apple's keys is a test's.
@Loop
final class VerificationRig {
  /// What stands on the topic of keys, and whether it can be read.
  @Loop
  final class KeysTopic {
    var keys: [AppleSigningKey]
    var fault: KafkaError?
    private(set) var reads = 0

    init(_ keys: [AppleSigningKey], _ fault: KafkaError?) { (self.keys, self.fault) = (keys, fault) }

    func read() throws(KafkaError) -> [KeyID: AppleSigningKey] {
      reads += 1
      if let fault { throw fault }
      return Dictionary(keys.map { ($0.id, $0) }) { $1 }
    }
  }

  let topic: KeysTopic
  let process: ProcessorRig
  nonisolated static let apple = Result { try EventSigner() }

  /// A process with a topic of these keys, or on what an earlier one has left.
  convenience init(
    _ consumer: EventConsumer, keys: [AppleSigningKey]? = nil, fault: KafkaError? = nil,
    after other: VerificationRig? = nil
  ) async throws { try await self.init(keys: keys, fault: fault, after: other) { _ in consumer } }

  /// The same of a consumer that is made with the process's store.
  init(
    keys: [AppleSigningKey]? = nil, fault: KafkaError? = nil, after other: VerificationRig? = nil,
    _ make: @escaping @Loop (any AccountStore) -> EventConsumer
  ) async throws {
    let apple = try Self.apple.get().written
    topic = other?.topic ?? KeysTopic(keys ?? [apple], fault)
    let (topic, event) = (topic, AccountEvent.sample(0))
    process = try await ProcessorRig(beside: other?.process) { surroundings in
      var consumer = make(surroundings.store)
      let keys = RecordedSigningKeys(surroundings.agenda, logger: surroundings.logger) { () throws(KafkaError) in
        try topic.read()
      }
      _ = keys.readAgain()
      let settings = VerificationSettings(
        issuer: AppleNotification.appleIssuer, teams: [event.audience: event.team])
      let verification = EventVerification(settings, keys, store: surroundings.store)
      consumer.verify = verification.check
      return consumer
    }
    try await process.assign(0)
  }

  /// Puts records onto the topic, and lets the processor do what it can.
  func send(_ records: KafkaRecord...) async throws {
    for record in records { process.put(record) }
    try await process.untilIdle()
  }

  /// Why events were put aside, and which.
  func letters() -> [String] {
    process.cluster.appended(on: Topic.deadLetters(of: "sample").name).map { record in
      ["ce_id", DeadLetter.Header.cause].map { name in
        record.headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) } ?? "-"
      }.joined(separator: " ")
    }
  }

  /// How many events wait for that.
  func waiting(for cause: String) -> String? {
    process.metric("siwa_consumer_retrying{consumer=\"sample\",cause=\"\(cause)\"}")
  }

  /// How many had that outcome.
  func count(_ outcome: String) -> String? {
    process.metric("siwa_consumer_events_total{consumer=\"sample\",outcome=\"\(outcome)\"}")
  }
}
