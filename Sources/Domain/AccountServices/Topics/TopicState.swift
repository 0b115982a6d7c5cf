package import Kafka

/// A topic as it is.
package struct TopicState: Sendable, Hashable {
  /// How many partitions it has.
  package let partitions: Int
  /// How many brokers keep the partition that the fewest keep.
  package let replication: Int
  /// Its settings by Kafka's own names.
  package let settings: [String: String]

  /// A topic with these.
  package init(partitions: Int, replication: Int, settings: [String: String]) {
    (self.partitions, self.replication, self.settings) = (partitions, replication, settings)
  }

  /// A setting.
  package subscript(aspect: TopicAspect) -> String? { settings[aspect.rawValue] }
}

extension Admin {
  /// How a topic is; nil where there is none.
  package func state(of topic: String, within limit: Duration) async throws(KafkaError) -> TopicState? {
    do throws(KafkaError) {
      let description = try await describe(topic: topic, within: limit)
      return TopicState(
        partitions: description.partitions.count, replication: description.partitions.map(\.replicas).min() ?? 0,
        settings: try await settings(of: topic, within: limit))
    } catch  where error.code == .unknownTopic {
      return nil
    }
  }
}
