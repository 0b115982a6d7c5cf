import CLibrdkafka
public import EventLoop

/// Makes topics, says what topics and groups there are, and changes how far they are. For operators' commands and
/// start-up, not for the way of a record.
@Loop
public final class Admin {
  /// How long one question about a group may take: librdkafka 2.0 waits in vain for a coordinator that the cluster has
  /// not made yet, as before the first group.
  private static let attempt = Duration.seconds(5)

  private let configuration: KafkaConfiguration
  private let log: KafkaLog
  private let client: Client
  private var isClosed = false

  /// Makes an admin. It connects by itself. Throws `invalidConfiguration` with librdkafka's own words.
  public init(_ configuration: KafkaConfiguration, log: @escaping KafkaLog) throws(KafkaError) {
    (self.configuration, self.log) = (configuration, log)
    client = try Client(RD_KAFKA_PRODUCER, configuration, .admin, events: 0, log: log)
  }

  /// Makes the topics that are not there yet, and returns their names. Those that are there stay as they are.
  ///
  /// Throws the first error if a topic could not be made; the others may be there. No answer within `limit` is
  /// uncertain, and asking again is safe.
  public func createTopics(_ topics: [NewTopic], within limit: Duration) async throws(KafkaError) -> Set<String> {
    guard !isClosed else { throw .adminClosed }
    return try await client.createTopics(topics, within: limit)
  }

  /// Asks the cluster for a topic and its partitions.
  public func describe(topic: String, within limit: Duration) async throws(KafkaError) -> TopicDescription {
    guard !isClosed else { throw .adminClosed }
    return try await client.describe(topic: topic, within: limit)
  }

  /// Asks for the offset of the first record that each partition still has, by partition. The same holds for it as for
  /// `endOffsets`.
  public func beginningOffsets(of topic: String, within limit: Duration) async throws(KafkaError) -> [Int32: Int64] {
    let end = MonotonicTime.now + limit
    return try await repeatedly(within: limit) { left throws(KafkaError) in
      guard !isClosed else { throw .adminClosed }
      let partitions = try await client.partitions(of: topic, within: left)
      return try await client.beginningOffsets(of: partitions, within: end - .now).byNumber
    }
  }

  /// Asks for the offset that the next record of each partition will have, by partition. Asks again while brokers do not
  /// agree yet who leads a partition, as after it was made. Throws the last answer when `limit` is over.
  public func endOffsets(of topic: String, within limit: Duration) async throws(KafkaError) -> [Int32: Int64] {
    let end = MonotonicTime.now + limit
    return try await repeatedly(within: limit) { left throws(KafkaError) in
      guard !isClosed else { throw .adminClosed }
      let partitions = try await client.partitions(of: topic, within: left)
      return try await client.endOffsets(of: partitions, within: end - .now).byNumber
    }
  }

  /// Waits until each partition of a topic has a broker that takes its records: a new topic needs a moment for that.
  ///
  /// Throws the cluster's last answer when `limit` is over or the task is cancelled.
  public func awaitTopic(_ topic: String, within limit: Duration) async throws(KafkaError) -> TopicDescription {
    try await repeatedly(within: limit) { left throws(KafkaError) in
      let description = try await describe(topic: topic, within: left)
      guard description.isReady else {
        throw KafkaError(.unknownTopic, detail: "a partition of the topic has no broker yet")
      }
      return description
    }
  }

  /// Asks the cluster for all its topics, by name, Kafka's own among them.
  public func describeTopics(within limit: Duration) async throws(KafkaError) -> [TopicDescription] {
    guard !isClosed else { throw .adminClosed }
    return try await client.describeTopics(within: limit)
  }

  /// Asks for the settings of a topic by Kafka's own names, such as `retention.ms`: also those that it has from the
  /// cluster.
  public func settings(of topic: String, within limit: Duration) async throws(KafkaError) -> [String: String] {
    guard !isClosed else { throw .adminClosed }
    return try await client.settings(of: topic, within: limit)
  }

  /// Asks for the offset of the first record of each partition that was made at a time (milliseconds since 1970) or
  /// later; where there is none, of the next record.
  public func offsets(
    of topic: String, since time: Int64, within limit: Duration
  ) async throws(KafkaError) -> [Int32: Int64] {
    try await repeatedly(within: limit) { left throws(KafkaError) in
      guard !isClosed else { throw .adminClosed }
      return try await client.offsets(of: topic, since: time, within: left)
    }
  }

  /// Deletes the records before these offsets, for good, and returns the first offset that each partition still has.
  ///
  /// Throws `refused` for a topic that is compacted only.
  public func deleteRecords(
    before offsets: [TopicPartition: Int64], within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: Int64] {
    guard !isClosed else { throw .adminClosed }
    return try await client.deleteRecords(before: offsets, within: limit)
  }

  /// Asks how far a group is: the offsets that it has committed, with the notes beside them, without the partitions of which
  /// it has committed none.
  public func commitments(
    of group: ConsumerGroup, _ partitions: Set<TopicPartition>, within limit: Duration
  ) async throws(KafkaError) -> [TopicPartition: CommittedOffset] {
    guard !isClosed else { throw .adminClosed }
    // Asked as a member would that never joins: librdkafka 2.0's own request for it ends the process where the broker that
    // it asks does not coordinate the group (any more): its issue 5040.
    let membership = GroupMembership(group, instance: nil, handover: .zero)
    let consumer = try Consumer(configuration, group: membership, log: log)
    let result: Result<[TopicPartition: CommittedOffset], KafkaError>
    do throws(KafkaError) {
      result = .success(
        try await repeatedly(within: limit) { left throws(KafkaError) in
          guard !isClosed else { throw .adminClosed }
          return try await consumer.commitments(of: partitions, within: min(left, Self.attempt))
        })
    } catch { result = .failure(error) }
    await consumer.close()
    return try result.get()
  }

  /// Sets how far a group is, forwards or back: it goes on with the records of these offsets.
  ///
  /// Throws `groupInUse` while the group has members: they would go on where they are, and commit that.
  public func resetOffsets(
    of group: ConsumerGroup, to offsets: [TopicPartition: Int64], within limit: Duration
  ) async throws(KafkaError) {
    guard !isClosed else { throw .adminClosed }
    try await client.resetOffsets(of: group, to: offsets, within: limit)
  }

  /// Asks for a group and its members. A group that nobody knows is `dead`.
  public func describe(group: ConsumerGroup, within limit: Duration) async throws(KafkaError) -> GroupDescription {
    try await repeatedly(within: limit) { left throws(KafkaError) in
      guard !isClosed else { throw .adminClosed }
      return try await client.describe(group: group, within: min(left, Self.attempt))
    }
  }

  /// Ends the admin.
  public func close() async {
    guard !isClosed else { return }
    isClosed = true
    await client.destroy()
  }
}

extension KafkaError {
  fileprivate static let adminClosed = KafkaError(.closed, detail: "the admin is closed")
}

extension ClientProfile {
  static let admin = ClientProfile(
    defaults: [(name: "reconnect.backoff.max.ms", value: "1000")], requirements: [noTopics, allTopics, log])
}
