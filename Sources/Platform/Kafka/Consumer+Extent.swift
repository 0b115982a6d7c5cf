import CLibrdkafka
import EventLoop

extension Consumer {
  /// Asks what the group has committed, by partition; nothing for a partition of which nothing was. Throws when `limit` is
  /// over; a coordinator that is away is waited for until then.
  public func commitments(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset] {
    guard !isClosed else { throw .consumerClosed }
    return try await client.commitments(of: partitions, within: limit)
  }

  /// Asks which offsets partitions hold, and for each of their times (milliseconds since 1970, none before it) which record
  /// is the first that is newer. Says nothing of partitions that the cluster does not answer for now.
  public func extents(
    of partitions: [TopicPartition: Set<Int64>], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: PartitionExtent] {
    guard !isClosed else { throw .consumerClosed }
    let end = MonotonicTime.now + limit
    // librdkafka takes these two for times.
    let (earliest, latest) = (Int64(RD_KAFKA_OFFSET_BEGINNING), Int64(RD_KAFKA_OFFSET_END))
    let firsts = try await client.offsets(at: partitions.mapValues { _ in earliest }, within: limit)
    // In this order the end is never before the first.
    let ends = try await client.offsets(at: partitions.mapValues { _ in latest }, within: end - .now)
    var newer: [TopicPartition: [Int64: Int64]] = [:]
    // One time a partition in each question.
    var left = partitions.filter { !$0.value.isEmpty }
    while !left.isEmpty {
      let times = left.compactMapValues(\.first)
      // Nothing is newer than the last time there is; it is asked with itself, so that whether it is answered is known.
      let answers = try await client.offsets(at: times.mapValues { $0 == .max ? $0 : $0 + 1 }, within: end - .now)
      for (partition, time) in times {
        newer[partition, default: [:]][time] = answers[partition].map { time == .max ? -1 : $0 }
      }
      left = left.mapValues { $0.subtracting($0.first.map { [$0] } ?? []) }.filter { !$0.value.isEmpty }
    }
    var extents: [TopicPartition: PartitionExtent] = [:]
    for (partition, first) in firsts {
      let answers = newer[partition] ?? [:]
      guard let end = ends[partition], answers.count == partitions[partition]?.count else { continue }
      extents[partition] = PartitionExtent(
        first: first, end: max(first, end), firstNewer: answers.filter { $0.value >= 0 })
    }
    return extents
  }

  /// Whether the member has its place in the group: it has been told its share, which may be nothing.
  public var isMember: Bool { !isClosed && share.isMember }

  /// Asks the cluster whether the topics that are subscribed to are there and may be read; throws what it says of the
  /// first that are not. Returns their partitions that have no leader.
  public func checkTopics(within limit: Duration) async throws(KafkaError) -> Set<TopicPartition> {
    guard !isClosed else { throw .consumerClosed }
    var list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    let result = unsafe rd_kafka_subscription(client.handle.pointer, &list)
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
    defer { unsafe rd_kafka_topic_partition_list_destroy(list) }
    let end = MonotonicTime.now + limit
    var leaderless: Set<TopicPartition> = []
    for topic in unsafe PartitionList.entries(of: UnsafePointer(list)).map(\.partition.topic) {
      let description = try await client.describe(topic: topic, within: max(end - .now, .milliseconds(1)))
      for partition in description.partitions where partition.leader == nil {
        leaderless.insert(TopicPartition(topic, partition.number))
      }
    }
    return leaderless
  }
}

extension Client {
  /// What the client's group has committed, with the notes beside it.
  fileprivate func commitments(
    of partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset] {
    let handle = handle
    return try await onThread {
      let list = PartitionList(partitions)
      let result = unsafe rd_kafka_committed(handle.pointer, list.pointer, limit.forLibrdkafka)
      if let failure = list.entries.failure(result) { return .failure(KafkaError(unreachable: failure)) }
      return .success(list.entries.commitments)
    }
  }

  /// Asks for the offset of the first record of each partition that was made at a time or later: below 0 where there is
  /// none. Without the partitions that are not answered for; throws where none is.
  fileprivate func offsets(
    at times: [TopicPartition: Int64], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    let handle = handle
    return try await onThread {
      let list = PartitionList(times)
      let result = unsafe rd_kafka_offsets_for_times(handle.pointer, list.pointer, max(1, limit.forLibrdkafka))
      let answered = list.entries.filter { $0.error == RD_KAFKA_RESP_ERR_NO_ERROR }
      if result != RD_KAFKA_RESP_ERR_NO_ERROR || answered.isEmpty, let failure = list.entries.failure(result) {
        return .failure(KafkaError(unreachable: failure))
      }
      return .success(Dictionary(answered.map { ($0.partition, $0.offset) }) { _, last in last })
    }
  }
}
