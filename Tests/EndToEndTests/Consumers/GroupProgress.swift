import AccountEvents
import AccountServices
import AccountStore
import EventLoop
import Kafka

/// How far the consumers' groups are, as the broker knows it.
@Loop
final class GroupProgress {
  private static let patience = Duration.seconds(300)
  private let admin: Admin

  init(_ brokers: String) throws {
    admin = try Admin(try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), log: { _ in })
  }

  /// Where the partitions of topics end.
  func ends(of topics: [Topic]) async throws -> [TopicPartition: Int64] {
    var ends: [TopicPartition: Int64] = [:]
    for topic in topics {
      for (partition, end) in try await admin.endOffsets(of: topic.name, within: Self.patience) {
        ends[TopicPartition(topic.name, partition)] = end
      }
    }
    return ends
  }

  /// How many records of its topics a consumer's group has not committed.
  func open(of consumer: ConsumerName, in group: String? = nil) async throws -> Int64 {
    let ends = try await ends(of: [.accountEvents, .retries(of: consumer)])
    let committed = try await admin.commitments(
      of: group.map { ConsumerGroup($0) } ?? Self.group(of: consumer), Set(ends.keys), within: Self.patience)
    return ends.reduce(0) { $0 + $1.value - (committed[$1.key]?.offset ?? 0) }
  }

  /// The same, or nil while the broker does not know.
  func openIfKnown(of consumer: ConsumerName, in group: String? = nil) async throws -> Int64? {
    do { return try await open(of: consumer, in: group) } catch let error as KafkaError where error.isRetriable {
      return nil
    }
  }

  /// Whether the group has committed all that is on its topics; false too while the broker does not know.
  func isDone(_ consumer: ConsumerName, in group: String? = nil) async throws -> Bool {
    try await openIfKnown(of: consumer, in: group) == 0
  }

  /// What a consumer's group has committed on its topics, with the notes beside it.
  func commitments(of consumer: ConsumerName) async throws -> [TopicPartition: CommittedOffset] {
    let partitions = Set(try await ends(of: [.accountEvents, .retries(of: consumer)]).keys)
    return try await admin.commitments(of: Self.group(of: consumer), partitions, within: Self.patience)
  }

  /// Sets a group without members back to the beginnings of its topics, as if it had read nothing.
  func empty(_ consumer: ConsumerName) async throws {
    let partitions = try await ends(of: [.accountEvents, .retries(of: consumer)]).keys
    try await admin.resetOffsets(
      of: Self.group(of: consumer), to: Dictionary(uniqueKeysWithValues: partitions.map { ($0, 0) }),
      within: Self.patience)
  }

  func close() async { await admin.close() }

  private static func group(of consumer: ConsumerName) -> ConsumerGroup { ConsumerGroup("siwa-\(consumer)") }
}
