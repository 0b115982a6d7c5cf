package import AccountEvents
import EventLoop
package import Kafka

/// A group without members that is to go on elsewhere in a topic.
///
/// Offsets that are set from outside have no note beside them, so consumers take the new place for where they were: they
/// neither look for what lies between as missing, nor take the topic for another one, nor ask for the account store that the
/// group had before.
package struct GroupReset: Sendable, Hashable {
  /// Where a group is to go on.
  package enum Target: Sendable, Hashable {
    /// Where it is: only the notes beside its offsets go.
    case committed
    /// At the oldest record of each partition.
    case beginning
    /// Behind the newest record of each partition.
    case end
    /// In each partition at the first record that was appended then or later.
    case time(Timestamp)
    /// At these records, by partition; in other partitions it stays where it is.
    case records([Int32: Int64])
  }

  /// What is changed of a partition.
  package struct Change: Sendable, Hashable {
    /// The partition.
    package let partition: Int32
    /// The offset of the record with which the group would go on; nil where it has committed nothing, and would begin at
    /// the first one.
    package let from: Int64?
    /// The offset of the record with which it is to go on.
    package let to: Int64
    /// The offset of the first record that there is.
    package let first: Int64

    /// How many offsets are passed over: nobody of the group reads them. Below 0 where so many are read again.
    package var distance: Int64 { to - max(from ?? first, first) }

    /// Whether the group goes on elsewhere. Where it does not, only the note beside its offset goes.
    package var isMove: Bool { from ?? first != to }
  }

  /// What comes of it.
  package enum Verdict: Sendable, Hashable {
    /// These partitions are to be changed, without those in which the group is there already, with no note beside it. Whether
    /// it has committed nothing there, as one that does not exist.
    case change([Change], isNew: Bool)
    /// Nothing is changed.
    case refused(Refusal)
  }

  /// Why nothing is changed.
  package enum Refusal: Sendable, Hashable, CustomStringConvertible {
    /// Its members would go on where they are.
    case hasMembers(Int)
    /// The record is not there.
    case outside(partition: Int32, held: Range<Int64>)
    /// There is no such partition.
    case unknown(partition: Int32)

    /// Says it.
    package var description: String {
      switch self {
      case .hasMembers(let count): "the group has members (\(count)): stop them first"
      case .outside(let partition, let held):
        "\(partition): not there; the partition holds \(held.lowerBound) to \(held.upperBound)"
      case .unknown(let partition): "there is no partition \(partition)"
      }
    }
  }

  private let group: ConsumerGroup
  private let topic: Topic
  private let target: Target
  private let limit: Duration

  /// A reset; `limit` is how long the cluster may take for each answer.
  package init(_ group: ConsumerGroup, on topic: Topic, to target: Target, within limit: Duration) {
    (self.group, self.topic, self.target, self.limit) = (group, topic, target, limit)
  }

  /// Says what would be changed.
  @Loop
  package func judge(with admin: Admin) async throws(KafkaError) -> Verdict {
    let members = try await admin.describe(group: group, within: limit).members.count
    if members > 0 { return .refused(.hasMembers(members)) }
    let held = try await admin.held(by: topic.name, within: limit)
    let targets: [Int32: Int64]
    switch target {
    case .committed, .beginning: targets = held.mapValues(\.lowerBound)
    case .end: targets = held.mapValues(\.upperBound)
    case .time(let time): targets = try await admin.offsets(of: topic.name, since: time.milliseconds, within: limit)
    case .records(let offsets):
      if let refusal = Self.refusal(of: offsets, held) { return .refused(refusal) }
      targets = offsets
    }
    let committed = try await admin.commitments(
      of: group, Set(targets.keys.map { TopicPartition(topic.name, $0) }), within: limit)
    return .change(
      targets.sorted { $0.key < $1.key }.compactMap { partition, target in
        let from = committed[TopicPartition(topic.name, partition)]
        let first = held[partition]?.lowerBound ?? target
        let offset = self.target == .committed ? from?.offset ?? first : target
        // A note that names an account store keeps the group from going on with another one: it is taken away.
        if from?.offset ?? first == offset, from.flatMap({ CommitNote($0.note).store }) == nil { return nil }
        return Change(partition: partition, from: from?.offset, to: offset, first: first)
      }, isNew: committed.isEmpty)
  }

  private static func refusal(of offsets: [Int32: Int64], _ held: [Int32: Range<Int64>]) -> Refusal? {
    for (partition, offset) in offsets.sorted(by: { $0.key < $1.key }) {
      guard let there = held[partition] else { return .unknown(partition: partition) }
      // Behind the last one is a place, too.
      guard there.lowerBound...there.upperBound ~= offset else { return .outside(partition: partition, held: there) }
    }
    return nil
  }

  /// Changes it. Throws `groupInUse` where a member has come meanwhile.
  @Loop
  package func apply(_ changes: [Change], with admin: Admin) async throws(KafkaError) {
    if changes.isEmpty { return }
    let offsets = changes.map { (TopicPartition(topic.name, $0.partition), $0.to) }
    try await admin.resetOffsets(of: group, to: Dictionary(offsets) { first, _ in first }, within: limit)
  }
}
