package import Kafka

/// Where a record stood that was put aside.
package struct RecordOrigin: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The topic.
  package let topic: String
  /// The partition.
  package let partition: Int32
  /// The offset.
  package let offset: Int64

  /// A place from its parts.
  package init(_ topic: String, _ partition: Int32, _ offset: Int64) {
    (self.topic, self.partition, self.offset) = (topic, partition, offset)
  }

  /// The record's own place.
  package init(_ record: ConsumedRecord) {
    (topic, partition, offset) = (record.topic, record.position.partition, record.position.offset)
  }

  /// Nil unless `text` is such as `apple.account-events.v1/3/17`.
  init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, let place = LetterPlace("\(parts[1])/\(parts[2])") else { return nil }
    (topic, partition, offset) = (String(parts[0]), place.partition, place.offset)
  }

  /// In the order in which they came, within a partition.
  package static func < (left: Self, right: Self) -> Bool {
    (left.topic, left.partition, left.offset) < (right.topic, right.partition, right.offset)
  }

  /// `apple.account-events.v1/3/17`.
  package var description: String { "\(topic)/\(partition)/\(offset)" }
}
