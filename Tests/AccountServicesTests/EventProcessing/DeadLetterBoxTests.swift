import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// A consumer's letters on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(5))) struct DeadLetterBoxTests {
  private nonisolated static let patience = Duration.seconds(60)

  /// The letter of an event that the log takes only where it is short.
  private func shortLetter(of event: AccountEvent) async throws -> KafkaRecord {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.permanent("not-ours") }
    let rig = try await ProcessorRig(calls.consumer())
    rig.log.fault = { record in
      record.value?.isEmpty ?? true ? nil : EventLogError(.refused, reason: "recordTooLarge", detail: "told to")
    }
    try await rig.assign(0)
    try await rig.send(event)
    try await rig.advance(by: .seconds(1))
    await rig.drain()
    return try #require(rig.cluster.appended.last { $0.topic.contains("dead-letters") })
  }

  @Test func aRecordThatIsTooLargeForALetterIsReadAndRetriedFromWhereItStands() async throws {
    let broker = try await RealBroker()
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)])
    let admin = try Admin(configuration, log: { _ in })
    let plans = TopicPlan.all(partitions: 1, replication: 1, consumers: ["sample"])
    _ = try await admin.createTopics(plans.map(\.newTopic), within: Self.patience)
    for plan in plans { _ = try await admin.awaitTopic(plan.topic.name, within: Self.patience) }
    let producer = try Producer(configuration, deadline: Self.patience, log: { _ in })
    let event = AccountEvent.sample(1)
    _ = try await producer.send(.of(event))
    _ = try await producer.send(.of(.sample(2)))
    _ = try await producer.send(try await shortLetter(of: event))

    let box = DeadLetterBox(configuration, of: "sample", within: Self.patience, log: { _ in })
    let letters = try await box.read().letters
    #expect(letters.map(\.isShortened) == [true] && letters.first?["ce_id"] == "event-1")
    var values: [[UInt8]?] = []
    try await box.contents(of: letters) { _, content throws(KafkaError) in values.append(content?.value) }
    #expect(values == [KafkaRecord.of(event).value])
    try await box.retry(letters, by: "grace", at: ProcessorRig.now) { _ in }
    #expect(try await box.read().letters.isEmpty)
    let retries = Topic.retries(of: "sample").name
    let reader = try Consumer(configuration, group: nil, log: { _ in })
    try reader.assign([PartitionStart(topic: retries, partition: 0, at: .beginning)])
    let retried = try #require(try await reader.next(upTo: 1).first)
    #expect(retried.key == event.account.key && retried.value == KafkaRecord.of(event).value)
    await reader.close()

    // Once its topic has forgotten it, that is said, and nothing is noted.
    _ = try await producer.send(try await shortLetter(of: event))
    _ = try await admin.deleteRecords(before: [.events(0): 1], within: Self.patience)
    let left = try await box.read().letters
    let error = await #expect(throws: KafkaError.self) {
      try await box.retry(left, by: "grace", at: ProcessorRig.now) { _ in }
    }
    #expect(error?.detail.contains("is not there any more: apple.account-events.v1/0/0") == true)
    #expect(try await box.read().letters.count == 1)
    _ = await producer.close(within: .zero)
    await admin.close()
  }
}
