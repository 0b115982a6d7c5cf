import AccountEvents
import EventLoop
import Kafka

/// Reads what a trial left on the topics.
@Loop
enum TrialReader {
  private static let topics = [Topic.accountEvents, .quarantine]

  /// Where each partition of the topics ends now, by topic.
  static func ends(_ brokers: String) async throws -> [String: [Int32: Int64]] {
    let admin = try Admin(try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), log: { _ in })
    var ends: [String: [Int32: Int64]] = [:]
    for topic in topics { ends[topic.name] = try await admin.endOffsets(of: topic.name, within: .seconds(300)) }
    await admin.close()
    return ends
  }

  /// The history of a trial, from the ends of the topics at its beginning to those of now.
  static func history(
    of bodies: SignedBodies, _ brokers: String, from beginnings: [String: [Int32: Int64]]
  ) async throws -> EventHistory {
    let ends = try await ends(brokers)
    var history = EventHistory(users: bodies.users, events: bodies.events)
    var starts: [PartitionStart] = []
    for (topic, partitions) in ends {
      for (partition, end) in partitions {
        let start = beginnings[topic]?[partition] ?? 0
        if start < end { starts.append(PartitionStart(topic: topic, partition: partition, at: .offset(start))) }
      }
    }
    let consumer = try Consumer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), group: nil, log: { _ in })
    try consumer.assign(starts)
    var left = starts.count
    while left > 0 {
      for record in try await consumer.next(upTo: 1000) {
        history.note(record, of: bodies.trial)
        if record.position.offset + 1 == ends[record.topic]?[record.position.partition] { left -= 1 }
      }
    }
    await consumer.close()
    return history
  }
}

extension EventHistory {
  fileprivate mutating func note(_ record: ConsumedRecord, of trial: UInt64) {
    guard let event = record.text(of: "ce_id").flatMap(SentEvent.init(jti:)), event.trial == trial else { return }
    if record.topic == Topic.quarantine.name {
      inQuarantine(user: event.user, number: event.number)
    } else {
      onTopic(user: event.user, number: event.number, partition: record.position.partition)
    }
  }
}
