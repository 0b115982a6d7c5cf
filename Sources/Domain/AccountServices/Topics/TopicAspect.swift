/// In what a topic can be other than it is to be; settings by Kafka's own names.
package enum TopicAspect: String, Sendable, CaseIterable, Comparable {
  /// There is no such topic.
  case existence = "existence"
  /// How many partitions it has.
  case partitions = "partitions"
  /// How many brokers keep each of them.
  case replication = "replication"
  /// How many must have a record before it is acknowledged.
  case minimumInSync = "min.insync.replicas"
  /// Whether old records are deleted, or all but the last one of each key.
  case cleanup = "cleanup.policy"
  /// How long what a later record of its key has overtaken stays at most.
  case compaction = "max.compaction.lag.ms"
  /// How long records are kept.
  case retention = "retention.ms"
  /// How much is kept of a partition.
  case retentionBytes = "retention.bytes"
  /// How large a batch of records may be.
  case largestBatch = "max.message.bytes"
  /// Whose clock decides how old a record is.
  case timestamps = "message.timestamp.type"
  /// Whether a broker that lacks records may take over.
  case uncleanElection = "unclean.leader.election.enable"

  /// In the order in which they are told.
  package static func < (left: Self, right: Self) -> Bool { left.order < right.order }

  private var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
