package import AccountEvents
package import AccountStore
package import Kafka

/// What a topic of ours is to be, so that nothing on it is lost, and nothing kept longer than it may be.
package struct TopicPlan: Sendable, Hashable {
  /// How long records are kept.
  package enum Kept: Sendable, Hashable {
    /// As many days.
    case days(Int)
    /// Until somebody deletes them.
    case forever
    /// The last one of each key, until a tombstone.
    case lastOfEachKey
  }

  /// The topic.
  package let topic: Topic
  /// How many consumers can share its records.
  package let partitions: Int
  /// How many brokers keep each record.
  package let replication: Int
  /// How long records are kept.
  package let kept: Kept

  /// How many of the copies must be there before a record is acknowledged: two, so that losing one loses nothing.
  package var minimumInSync: Int { min(2, replication) }

  /// The consumers that are programs of the house.
  package static let consumers: [ConsumerName] = [.tokenRevoker, .dataEraser, .emailRelay]

  /// All topics that the programs use, those of these consumers among them. `partitions` are those of the account events
  /// and of what follows from them, `replication` is everybody's.
  package static func all(
    partitions: Int = 12, replication: Int = 3, consumers: [ConsumerName] = TopicPlan.consumers
  ) -> [TopicPlan] {
    func plan(_ topic: Topic, _ partitions: Int, _ kept: Kept) -> TopicPlan {
      TopicPlan(topic: topic, partitions: partitions, replication: replication, kept: kept)
    }
    return [
      // Account events name people: they are kept for less time than there is to erase an account.
      plan(.accountEvents, partitions, .days(14)), plan(.quarantine, 1, .lastOfEachKey),
      plan(.signingKeys, 1, .lastOfEachKey), plan(.outcomes, partitions, .forever),
      plan(.emailRelay, partitions, .lastOfEachKey),
    ]
      + consumers.flatMap {
        [plan(.deadLetters(of: $0), 1, .lastOfEachKey), plan(.retries(of: $0), partitions, .days(14))]
      }
  }

  /// The topics that the ingress uses.
  package static var ofIngress: [TopicPlan] {
    all().filter { [.accountEvents, .quarantine, .signingKeys].contains($0.topic) }
  }

  /// The topic that `siwa-accounts` publishes to.
  package static var ofAccounts: [TopicPlan] { all().filter { $0.topic == .accountEvents } }

  /// The topics that a consumer uses, but for what it says itself.
  package static func of(_ consumer: ConsumerName) -> [TopicPlan] {
    all(consumers: [consumer]).filter {
      [.accountEvents, .deadLetters(of: consumer), .retries(of: consumer)].contains($0.topic)
    }
  }

  /// The settings that the topic needs, by Kafka's own names.
  package var settings: [TopicAspect: String] {
    var settings: [TopicAspect: String] = [
      .minimumInSync: String(minimumInSync), .uncleanElection: "false", .retentionBytes: "-1",
      // By the clock of the ingress, one that is ahead would have its records refused, one that is behind deleted.
      .timestamps: "LogAppendTime",
      // Kafka's own default, which holds any batch of ours: a topic that takes less than those refuses healthy records.
      .largestBatch: "1048588",
    ]
    switch kept {
    case .days(let days):
      settings[.cleanup] = "delete"
      settings[.retention] = String(days * 86_400_000)
    case .forever:
      settings[.cleanup] = "delete"
      settings[.retention] = "-1"
    case .lastOfEachKey:
      settings[.cleanup] = "compact"
      // What was erased or dealt with names people: it goes, however little else happens on the topic.
      settings[.compaction] = String(7 * 86_400_000)
    }
    return settings
  }

  /// The topic as it is to be made.
  package var newTopic: NewTopic {
    NewTopic(
      topic.name, partitions: partitions, replicationFactor: replication,
      settings: Dictionary(settings.map { ($0.key.rawValue, $0.value) }) { first, _ in first })
  }
}
