package import AccountEvents
import Kafka

/// In what a topic is other than it is to be.
package struct TopicDifference: Sendable, Hashable, CustomStringConvertible {
  /// The topic.
  package let topic: Topic
  /// In what.
  package let aspect: TopicAspect
  /// What it is to be.
  package let expected: String
  /// What it is; nil where there is nothing.
  package let found: String?
  /// Whether records can be lost for it that were to be kept.
  package let isWeakness: Bool

  /// `apple.account-events.v1: replication is 1, not 3`.
  package var description: String {
    guard let found else { return "\(topic) is missing" }
    return "\(topic): \(aspect.rawValue) is \(found), not \(expected)"
  }
}

extension TopicPlan {
  /// In what the topic is other than it is to be, as the cluster describes it; nil where the cluster has none.
  package func differences(from state: TopicState?) -> [TopicDifference] {
    guard let state else {
      return [TopicDifference(topic: topic, aspect: .existence, expected: "a topic", found: nil, isWeakness: true)]
    }
    var differences: [TopicDifference] = []
    func compare(_ aspect: TopicAspect, _ expected: Int, _ found: Int, isWeakness: Bool) {
      guard found != expected else { return }
      differences.append(
        TopicDifference(
          topic: topic, aspect: aspect, expected: String(expected), found: String(found), isWeakness: isWeakness))
    }
    // With partitions that are added, keys move, and in a compacted topic the last records of before would stay for good
    // where they were: no tombstone comes there.
    if topic != .emailRelay { compare(.partitions, partitions, state.partitions, isWeakness: false) }
    compare(.replication, replication, state.replication, isWeakness: state.replication < replication)
    for (aspect, expected) in settings.sorted(by: { $0.key < $1.key }) {
      let found = state[aspect] ?? "unknown"
      guard !aspect.holds(found, as: expected) else { continue }
      differences.append(
        TopicDifference(
          topic: topic, aspect: aspect, expected: expected, found: found,
          isWeakness: aspect.isWeaker(found, than: expected)))
    }
    return differences
  }
}

extension TopicAspect {
  /// The largest batch that librdkafka makes (`batch.size`). Kafka's default was little more than that once, and is 1 MiB
  /// elsewhere: neither refuses any.
  private static var batch: Int64 { 1_000_000 }

  /// Whether a setting is as it is to be.
  fileprivate func holds(_ found: String, as expected: String) -> Bool {
    self == .largestBatch ? Self.number(found) >= Self.batch : found == expected
  }

  /// Whether a setting that differs lets records go that were to be kept.
  fileprivate func isWeaker(_ found: String, than expected: String) -> Bool {
    switch self {
    case .minimumInSync, .largestBatch:
      return Self.number(found) < Self.number(expected)
    case .retention, .retentionBytes:
      return Self.limit(found) < Self.limit(expected)
    case .compaction:
      return false
    case .existence, .partitions, .replication, .cleanup, .timestamps, .uncleanElection:
      return true
    }
  }

  private static func number(_ text: String) -> Int64 { Int64(text) ?? 0 }

  /// -1 is no limit.
  private static func limit(_ text: String) -> Int64 { number(text) < 0 ? .max : number(text) }
}
