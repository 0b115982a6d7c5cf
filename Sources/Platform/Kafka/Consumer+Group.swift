import CLibrdkafka
import EventLoop

extension Consumer {
  /// Joins the group for these topics: the cluster divides their partitions among the members. Where the group has
  /// committed nothing for a partition, it is read from its beginning (`auto.offset.reset`).
  public func subscribe(to topics: [String]) throws(KafkaError) {
    precondition(membership != nil, "a consumer without a group cannot subscribe")
    guard !isClosed else { throw .consumerClosed }
    let list = PartitionList(Set(topics.map { TopicPartition($0, RD_KAFKA_PARTITION_UA) }))
    client.mustNotBeFreed()
    let result = unsafe rd_kafka_subscribe(client.handle.pointer, list.pointer)
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
  }

  /// The partitions that are ours at the moment; those that were revoked until they are released.
  public var partitions: Set<TopicPartition> { share.held }

  /// Commits how far the group is, and returns once the cluster has it: for each partition the offset of the next record
  /// that is to be read.
  ///
  /// Throws `groupChanged` without asking where a partition is not ours (any more): the offset of whoever has it now must
  /// not be set back. Throws `groupMoving` while the group divides its partitions anew: what is still ours afterwards can
  /// be committed then. Throws when `limit` is over: with `isUncertain` where the cluster may have it all the same, with
  /// `isRetriable` where an earlier commit was still on its way, because they are made one after the other.
  public func commit(_ offsets: [TopicPartition: CommittedOffset], within limit: Duration) async throws(KafkaError) {
    guard !isClosed else { throw .consumerClosed }
    guard !offsets.isEmpty else { return }
    try await commits.commit(offsets, within: limit) { [weak self] in
      let foreign = offsets.keys.filter { self?.share.held.contains($0) != true }.min()
      return foreign.map { KafkaError(.groupChanged, detail: "\($0) is not ours") }
    }
  }

  /// Lets the partitions go that were revoked, after committing these offsets of theirs: the next member goes on there.
  ///
  /// The partitions go even where the commit fails, or is not answered within `limit`, with its error: then the next
  /// member does again what was done since the last commit. Throws `groupChanged` where they are gone already.
  public func release(
    committing offsets: [TopicPartition: CommittedOffset], within limit: Duration
  ) async throws(KafkaError) {
    guard !isClosed else { throw .consumerClosed }
    guard !share.leaving.isEmpty else { throw KafkaError(.groupChanged, detail: "nothing is to be released any more") }
    let handover = share.handover
    defer { if handover == share.handover, !isClosed { letGo() } }
    try await commit(offsets, within: limit)
  }

  /// Takes partitions up, or begins to hand them over.
  func rebalance(_ event: OpaquePointer) {
    // There has been an assignment, be it of nothing.
    client.mayBeFreed()
    let list = unsafe rd_kafka_event_topic_partition_list(event)
    let partitions = Set(unsafe PartitionList.entries(of: UnsafePointer(list)).map(\.partition))
    let handle = client.handle
    let isLost = unsafe rd_kafka_assignment_lost(handle.pointer) != 0
    switch unsafe rd_kafka_event_error(event) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
      if let error = unsafe rd_kafka_incremental_assign(handle.pointer, list) {
        fail(unsafe KafkaError(consuming: error))
      } else {
        share.isMember = true
        share.gain(partitions)
      }
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS where !isLost && !share.held.isDisjoint(with: partitions):
      share.beginHandover(partitions, until: Loop.now + (membership?.handover ?? .zero))
    default:
      share.lose(partitions)
      unassign(partitions)
    }
  }

  /// Whoever held the records took too long: the group cannot wait.
  func loseWhatWasNotReleased() {
    let leaving = share.leaving
    share.lose(leaving)
    unassign(leaving)
    wake()
  }

  private func letGo() {
    let gone = share.endHandover()
    if !gone.isEmpty { unassign(gone) }
  }

  /// Tells librdkafka that nobody works on these partitions any more: only now does the group go on.
  private func unassign(_ partitions: Set<TopicPartition>) {
    let list = PartitionList(partitions)
    if let error = unsafe rd_kafka_incremental_unassign(client.handle.pointer, list.pointer) {
      fail(unsafe KafkaError(consuming: error))
    }
  }
}
