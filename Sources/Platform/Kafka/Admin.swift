import CLibrdkafka
public import EventLoop

/// Makes topics, and says what topics there are. For operators' commands and start-up, not for the way of a record.
@Loop
public final class Admin {
  private let client: Client
  private var isClosed = false

  /// Makes an admin. It connects by itself. Throws `invalidConfiguration` with librdkafka's own words.
  public init(_ configuration: KafkaConfiguration, log: @escaping KafkaLog) throws(KafkaError) {
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

  /// Asks for the offset that the next record of each partition will have, by partition. Asks again while brokers do not
  /// agree yet who leads a partition, as after it was made. Throws the last answer when `limit` is over.
  public func endOffsets(of topic: String, within limit: Duration) async throws(KafkaError) -> [Int32: Int64] {
    try await repeatedly(within: limit) { left throws(KafkaError) in
      let description = try await describe(topic: topic, within: left)
      return try await client.endOffsets(of: topic, description.partitions.map(\.number), within: left)
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

  /// Asks, and asks again after a short pause where the answer may be another later.
  private func repeatedly<Value>(
    within limit: Duration, _ ask: (Duration) async throws(KafkaError) -> Value
  ) async throws(KafkaError) -> Value {
    let end = MonotonicTime.now + limit
    while true {
      let failure: KafkaError
      do throws(KafkaError) {
        return try await ask(max(end - .now, .milliseconds(1)))
      } catch {
        guard error.isRetriable else { throw error }
        failure = error
      }
      let next = MonotonicTime.now + .milliseconds(50)
      guard next < end else { throw failure }
      do { try await Loop.sleep(until: next) } catch { throw failure }
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
  fileprivate static let admin = ClientProfile(
    defaults: [(name: "reconnect.backoff.max.ms", value: "1000")], requirements: [log])
}
