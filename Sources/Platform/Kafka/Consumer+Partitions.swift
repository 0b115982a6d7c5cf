import CLibrdkafka
import EventLoop

extension Consumer {
  /// Asks which partitions a topic has.
  public func partitions(of topic: String, within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> {
    guard !isClosed else { throw .consumerClosed }
    return try await client.partitions(of: topic, within: limit)
  }

  /// Reads no further records of these partitions until `resume`. What was read and not yet asked for comes afterwards.
  ///
  /// Like `resume` and `assign` it waits for librdkafka's main thread, on the loop: for as long as that is busy.
  public func pause(_ partitions: Set<TopicPartition>) throws(KafkaError) {
    guard !isClosed else { throw .consumerClosed }
    paused.formUnion(partitions)
    try unsafe change(partitions) { client, list in unsafe rd_kafka_pause_partitions(client, list) }
  }

  /// Reads on where `pause` stopped, also where a partition went and came back meanwhile. Does nothing for one that is
  /// not paused: librdkafka 2.0 would drop what it has fetched of it (its issue 4636).
  public func resume(_ partitions: Set<TopicPartition>) throws(KafkaError) {
    guard !isClosed else { throw .consumerClosed }
    let halted = paused.intersection(partitions)
    if halted.isEmpty { return }
    paused.subtract(halted)
    try unsafe change(halted) { client, list in unsafe rd_kafka_resume_partitions(client, list) }
  }

  /// Reads on from these offsets. Waits for a partition that was assigned just now and is not being read yet.
  ///
  /// Where librdkafka 2.0 learns only later where that partition begins for the group, it begins there once more: records
  /// come twice, and none is left out.
  public func seek(to offsets: [TopicPartition: Int64], within limit: Duration) async throws(KafkaError) {
    try await repeatedly(within: limit) { left throws(KafkaError) in
      guard !isClosed else { throw .consumerClosed }
      do throws(KafkaError) { try await client.seek(to: offsets, within: left) } catch {
        // librdkafka 2.0 takes the milliseconds for microseconds and gives up soon. The same again does no harm.
        throw error.code == .timedOut ? KafkaError(.timedOut, .retriable, detail: error.detail) : error
      }
    }
  }

  /// The offset behind the last record that was returned, by partition; nothing for a partition of which none was.
  public func positions(of partitions: Set<TopicPartition>) throws(KafkaError) -> [TopicPartition: Int64] {
    guard !isClosed else { throw .consumerClosed }
    let list = PartitionList(partitions)
    let result = unsafe rd_kafka_position(client.handle.pointer, list.pointer)
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
    return list.entries.offsets
  }

  /// Asks for the offset of the first record that each partition still has. Where the group has committed less, the
  /// records between the two are gone, and reading begins here: librdkafka tells nobody of that but its log.
  ///
  /// Asks again while brokers do not agree who leads a partition, or one is away. Throws the last answer when `limit` is
  /// over: other calls of this consumer wait for this one until then.
  public func beginningOffsets(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    let end = MonotonicTime.now + limit
    return try await repeatedly(within: limit) { _ throws(KafkaError) in
      guard !isClosed else { throw .consumerClosed }
      return try await client.beginningOffsets(of: partitions, within: end - .now)
    }
  }

  /// Asks for the offset that the next record of each partition will have. Where the group has committed more, the
  /// partition begins anew, and reading begins at `beginningOffsets`. The limit is kept as there.
  public func endOffsets(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    let end = MonotonicTime.now + limit
    return try await repeatedly(within: limit) { _ throws(KafkaError) in
      guard !isClosed else { throw .consumerClosed }
      return try await client.endOffsets(of: partitions, within: end - .now)
    }
  }

  /// The offset that the next record of a partition will have, as far as the broker has said while it was read: asks
  /// nobody. Nil before that.
  public func knownEnd(of partition: TopicPartition) -> Int64? {
    guard !isClosed else { return nil }
    var (first, next) = (Int64(-1), Int64(-1))
    let result = unsafe rd_kafka_get_watermark_offsets(
      client.handle.pointer, partition.topic, partition.partition, &first, &next)
    return result == RD_KAFKA_RESP_ERR_NO_ERROR && next >= 0 ? next : nil
  }

  /// How many records of a partition lie before us, as far as is known: asks nobody. Nil until one was returned.
  public func lag(of partition: TopicPartition) throws(KafkaError) -> Int64? {
    guard let end = knownEnd(of: partition), let position = try positions(of: [partition])[partition] else {
      return nil
    }
    return max(0, end - position)
  }

  /// Reads all partitions of a topic from a time on, and nothing else: from the first record that was made then
  /// (milliseconds since 1970) or later; where there is none, from the end.
  public func assign(_ topic: String, since time: Int64, within limit: Duration) async throws(KafkaError) {
    let offsets = try await repeatedly(within: limit) { left throws(KafkaError) in
      guard !isClosed else { throw .consumerClosed }
      return try await client.offsets(of: topic, since: time, within: left)
    }
    try assign(offsets.map { PartitionStart(topic: topic, partition: $0.key, at: .offset($0.value)) })
  }

  private func change(
    _ partitions: Set<TopicPartition>,
    _ call: (OpaquePointer, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) -> rd_kafka_resp_err_t
  ) throws(KafkaError) {
    let list = PartitionList(partitions)
    let result = unsafe call(client.handle.pointer, list.pointer)
    if let failure = list.entries.failure(result) { throw KafkaError(failure) }
  }
}
