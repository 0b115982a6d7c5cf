import AccountEvents
import AccountServices
import EventLoop
import Kafka
import Telemetry
import TestSupport
import Testing

/// What is said at start about topics that are less durable than they are to be.
@Loop @Suite(.timeLimit(.minutes(30))) struct TopicWatchTests {
  private let lines = CapturedLog()
  private let registry = MetricsRegistry()

  private func watch(
    _ brokers: String, _ plans: [TopicPlan], every interval: Duration = .seconds(3600)
  ) throws -> TopicWatch {
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", brokers)])
    return TopicWatch(configuration, plans, every: interval, registry: registry, logger: lines.logger())
  }

  private var weaknesses: String? {
    String(decoding: registry.render(), as: UTF8.self).split(separator: "\n").first {
      $0.hasPrefix("siwa_topic_weaknesses ")
    }.map(String.init)
  }

  @Test(RealBroker.isThere) func saysEachWeaknessOnceAndWaitsForWhatIsMissing() async throws {
    let broker = try await RealBroker()
    let ofIngress = TopicPlan.ofIngress
    let weak = TopicPlan.all(partitions: 1, replication: 1).filter { plan in
      ofIngress.contains { $0.topic == plan.topic }
    }
    let admin = try Admin(
      KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), log: { _ in })
    _ = try await admin.createTopics(weak.dropLast().map(\.newTopic), within: .seconds(300))
    let watch = try watch(broker.bootstrapServers, ofIngress)
    let run = Task(executorPreference: Loop.executor) { await watch.look() }
    try await until { lines.lines.count == 5 }
    #expect(weaknesses == "siwa_topic_weaknesses 5")
    _ = try await admin.createTopics(weak.suffix(1).map(\.newTopic), within: .seconds(300))
    await run.value
    await admin.close()
    #expect(weaknesses == "siwa_topic_weaknesses 6")
    #expect(lines.lines.count == 7)
    #expect(lines.lines.allSatisfy { $0.contains("a topic is less durable than it is to be") })
    for (topic, aspect, expected, found) in [
      ("apple.account-events.v1", "replication", "3", "1"),
      ("apple.account-events.v1", "min.insync.replicas", "2", "1"),
      ("apple.account-events.quarantine.v1", "replication", "3", "1"),
      ("apple.signing-keys.v1", "existence", "a topic", "nothing"),
      ("apple.signing-keys.v1", "min.insync.replicas", "2", "1"),
    ] {
      let words = ["\"\(topic)\"", "\"\(aspect)\"", "\"\(expected)\"", "\"\(found)\"", "\"warning\""]
      #expect(lines.lines.count { line in words.allSatisfy { line.contains($0) } } == 1, "\(topic) \(aspect)")
    }
  }

  @Test(RealBroker.isThere) func isSilentAboutTopicsThatAreAsTheyAreToBe() async throws {
    let broker = try await RealBroker()
    let plans = TopicPlan.all(partitions: 1, replication: 1)
    let admin = try Admin(
      KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), log: { _ in })
    _ = try await admin.createTopics(plans.map(\.newTopic), within: .seconds(300))
    for plan in plans { _ = try await admin.awaitTopic(plan.topic.name, within: .seconds(300)) }
    await admin.close()
    await (try watch(broker.bootstrapServers, plans)).look()
    #expect(lines.lines == [])
    #expect(weaknesses == "siwa_topic_weaknesses 0")
  }

  @Test(RealBroker.isThere) func saysWhatSomebodyChangedLater() async throws {
    let broker = try await RealBroker()
    let plan = try #require(TopicPlan.all(partitions: 1, replication: 1).first)
    let admin = try Admin(
      KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)]), log: { _ in })
    _ = try await admin.createTopics([plan.newTopic], within: .seconds(300))
    _ = try await admin.awaitTopic(plan.topic.name, within: .seconds(300))
    let watch = try watch(broker.bootstrapServers, [plan], every: .milliseconds(20))
    let run = Task(executorPreference: Loop.executor) { await watch.run() }
    try await until { weaknesses == "siwa_topic_weaknesses 0" }
    try await broker.run(
      "kafka-configs.sh",
      [
        "--alter", "--entity-type", "topics", "--entity-name", plan.topic.name, "--add-config", "retention.ms=1000",
      ])
    try await until { weaknesses == "siwa_topic_weaknesses 1" }
    try await broker.run(
      "kafka-configs.sh",
      [
        "--alter", "--entity-type", "topics", "--entity-name", plan.topic.name, "--add-config",
        "retention.ms=\(plan.settings[.retention] ?? "")",
      ])
    try await until { weaknesses == "siwa_topic_weaknesses 0" }
    run.cancel()
    await run.value
    await admin.close()
    #expect(lines.lines.count == 1)
    #expect(lines.lines.first?.contains("\"retention.ms\"") == true)
  }

  @Test func doesNotBlameAClusterThatCannotSay() async throws {
    let cluster = try EmbeddedCluster(brokers: 1)
    for plan in TopicPlan.all() { try cluster.createTopic(plan.topic.name, partitions: 1) }
    let watch = try watch(cluster.bootstrapServers, TopicPlan.all())
    for _ in 0..<2 { await watch.look() }
    #expect(lines.lines.count == 1)
    #expect(lines.lines.first?.contains("\"info\"") == true)
    _ = consume cluster
  }

  @Test func endsWithTheProgramWhileNobodyCanBeAsked() async throws {
    let watch = try watch("127.0.0.1:9", TopicPlan.all())
    let run = Task(executorPreference: Loop.executor) { await watch.run() }
    await Loop.nextTurn()
    run.cancel()
    await run.value
    #expect(lines.lines == [])
  }
}
