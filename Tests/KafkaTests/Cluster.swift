import EventLoop
import Kafka
import Synchronization
import TestSupport

/// What the contract needs of a cluster, whichever it is.
struct Cluster: Sendable {
  let bootstrapServers: String
  /// Makes a topic and returns its name, which no other test has.
  let makeTopic: @Sendable (_ partitions: Int) async throws -> String
  /// A name that no topic has, and under which none is made.
  let nameOfNoTopic: String

  /// librdkafka's own, fresh for each test.
  static func embedded() throws -> Cluster {
    let cluster = try EmbeddedCluster(brokers: 1)
    cluster.refuseTopic("nowhere")
    return Cluster(
      bootstrapServers: cluster.bootstrapServers,
      makeTopic: { partitions in
        try cluster.createTopic("topic", partitions: partitions)
        return "topic"
      }, nameOfNoTopic: "nowhere")
  }

  /// A real broker, which many tests share.
  static func real(_ broker: RealBroker) -> Cluster {
    Cluster(
      bootstrapServers: broker.bootstrapServers,
      makeTopic: { partitions in
        let name = "topic-\(Self.topics.add(1, ordering: .relaxed).newValue)"
        try await makeRealTopic(NewTopic(name, partitions: partitions, replicationFactor: 1), on: broker)
        return name
      }, nameOfNoTopic: "nowhere")
  }

  private static let topics = Atomic(0)

  func configuration(_ properties: [(String, String)] = []) throws -> KafkaConfiguration {
    try KafkaConfiguration(properties: [("bootstrap.servers", bootstrapServers)] + properties)
  }

  /// Runs `body` with a producer, and closes it. Its deadline is far away: a busy machine must not decide a test.
  @Loop
  func withProducer<Value>(
    _ properties: [(String, String)] = [], maximumWaiting: Int = 1024,
    _ body: @Loop (Producer) async throws -> Value
  ) async throws -> Value {
    let producer = try Producer(
      configuration(properties), deadline: .seconds(600), maximumWaiting: maximumWaiting, log: { _ in })
    let result: Result<Value, any Error>
    do { result = .success(try await body(producer)) } catch { result = .failure(error) }
    _ = await producer.close(within: .seconds(300))
    return try result.get()
  }

  /// Reads `count` records of a topic from its beginning.
  @Loop
  func read(_ count: Int, from topic: String, partitions: Int32 = 1) async throws -> [ConsumedRecord] {
    let consumer = try Consumer(configuration(), group: nil, log: { _ in })
    try consumer.assign((0..<partitions).map { PartitionStart(topic: topic, partition: $0, at: .beginning) })
    let records = try await consumer.take(count)
    await consumer.close()
    return records
  }
}

extension Consumer {
  /// Waits for exactly `count` records.
  func take(_ count: Int) async throws -> [ConsumedRecord] {
    var records: [ConsumedRecord] = []
    while records.count < count {
      records += try await next(upTo: count - records.count)
      try Task.checkCancellation()
    }
    return records
  }
}

/// Makes a topic on a real broker and waits until it takes records.
@Loop
func makeRealTopic(_ topic: NewTopic, on broker: RealBroker) async throws {
  let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)])
  let admin = try Admin(configuration, log: { _ in })
  let created = try await admin.createTopics([topic], within: .seconds(300))
  precondition(created == [topic.name], "two tests make the same topic")
  _ = try await admin.awaitTopic(topic.name, within: .seconds(300))
  await admin.close()
}
