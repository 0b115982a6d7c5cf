import AccountEvents
import AppleSimulator
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// The topic of all events, as the ingress fills it.
@Loop
struct EventsTopic {
  private static let silence: KafkaLog = { _ in }

  let brokers: String

  private var configuration: KafkaConfiguration {
    get throws { try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]) }
  }

  /// Publishes events with these ids, each of the person of that name.
  func publish(
    _ ids: some Sequence<String>, _ kind: AccountEvent.Kind = .consentRevoked, of team: String = AccountsStage.team,
    _ client: String = AccountsStage.app, at time: Timestamp = .now
  ) async throws {
    let records = try ids.map { id in
      KafkaRecord.of(
        AccountEvent(
          id: try #require(EventID(id)), team: try #require(TeamID(team)), audience: try #require(ClientID(client)),
          subject: try #require(AppleSubject(Person(named: id).subject)), kind: kind, occurredAt: time, issuedAt: time))
    }
    try await send(records)
  }

  /// Publishes what no program of this version understands.
  func publish(value: String) async throws {
    try await send([KafkaRecord(topic: Topic.accountEvents.name, key: nil, value: Array(value.utf8))])
  }

  private func send(_ records: [KafkaRecord]) async throws {
    try await Producer.run(try configuration, deadline: .seconds(300), log: Self.silence) {
      producer throws(KafkaError) in
      for result in await producer.send(records) { _ = try result.get() }
    }
  }

  /// Has the broker forget all that the topic holds.
  func forgetAll() async throws {
    try await Admin.run(try configuration, log: Self.silence) { admin throws(KafkaError) in
      let topic = Topic.accountEvents.name
      let end = try await admin.endOffsets(of: topic, within: .seconds(300))
      _ = try await admin.deleteRecords(
        before: Dictionary(uniqueKeysWithValues: end.map { (TopicPartition(topic, $0.key), $0.value) }),
        within: .seconds(300))
    }
  }
}
