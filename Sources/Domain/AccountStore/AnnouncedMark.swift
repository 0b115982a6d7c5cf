/// A partition of a topic whose events a consumer reads: of the account events, or of its own for retried dead letters.
package struct SourcePartition: Sendable, Hashable {
  /// The topic.
  package let topic: String
  /// The partition.
  package let partition: Int32

  /// A partition of a topic.
  package init(topic: String, partition: Int32) { (self.topic, self.partition) = (topic, partition) }
}

/// A partition that a process is given, and claims in the store.
package struct PartitionClaim: Sendable, Hashable {
  /// The partition.
  package let partition: SourcePartition
  /// Where it begins anew, if it does: offsets from there on are other records than those that were announced.
  package let beginsAnewAt: Int64?

  /// A claim of a partition.
  package init(_ partition: SourcePartition, beginsAnewAt: Int64? = nil) {
    (self.partition, self.beginsAnewAt) = (partition, beginsAnewAt)
  }
}

/// How far what follows from a partition's events is announced. Everything settled from a record below the offset is; of
/// what lies above, the process that claimed the partition last announces it, again if need be.
package struct AnnouncedMark: Sendable, Hashable {
  /// Who announces.
  package let consumer: ConsumerName
  /// Whose events.
  package let partition: SourcePartition
  /// The number of the claim: the store raises the mark only for the last one.
  package let claim: Int64
  /// The offset behind the last record of which all is announced, without a gap.
  package var offset: Int64
  /// When it was raised last, and which records above the offset are over, too: of one that waits for days the others are
  /// not announced again after each restart. In the processor's own words; the store keeps it with the offset and does not
  /// look at it. Empty: it never was, or the partition began anew since.
  package var beyond: String

  /// A mark from its parts.
  package init(
    consumer: ConsumerName, partition: SourcePartition, claim: Int64, offset: Int64, beyond: String = ""
  ) {
    (self.consumer, self.partition, self.claim) = (consumer, partition, claim)
    (self.offset, self.beyond) = (offset, beyond)
  }
}
