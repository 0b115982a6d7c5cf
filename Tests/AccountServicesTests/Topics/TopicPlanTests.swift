import AccountEvents
import AccountServices
import AccountStore
import Kafka
import Testing

/// Whether a topic is as it is to be.
@Suite struct TopicPlanTests {
  private static let plans = TopicPlan.all()

  /// The topic of a plan once it was made, changed.
  private static func state(
    _ plan: TopicPlan, partitions: Int? = nil, replication: Int? = nil, _ changes: KeyValuePairs<String, String?> = [:]
  ) -> TopicState {
    var settings = plan.newTopic.settings
    for (name, value) in changes { settings[name] = value }
    return TopicState(
      partitions: partitions ?? plan.partitions, replication: replication ?? plan.replication, settings: settings)
  }

  @Test(arguments: plans) func aTopicThatWasMadeAsPlannedIsAsItIsToBe(_ plan: TopicPlan) {
    #expect(plan.differences(from: Self.state(plan)) == [])
  }

  @Test(arguments: plans) func aTopicThatIsMissingIsAWeakness(_ plan: TopicPlan) {
    let differences = plan.differences(from: nil)
    #expect(differences.map(\.description) == ["\(plan.topic) is missing"])
    #expect(differences.map(\.isWeakness) == [true])
  }

  /// What its keys have left behind in a partition would have no tombstone any more.
  @Test func nobodyIsToldToGiveTheStateOfMailMorePartitions() throws {
    let plan = try #require(TopicPlan.all(partitions: 24).first { $0.topic == .emailRelay })
    #expect(plan.differences(from: Self.state(plan, partitions: 12)) == [])
  }

  struct Row: Sendable {
    let topic: Topic
    let state: @Sendable (TopicPlan) -> TopicState
    let description: String
    let isWeakness: Bool

    init(
      _ topic: Topic, _ description: String, isWeakness: Bool, _ state: @escaping @Sendable (TopicPlan) -> TopicState
    ) {
      (self.topic, self.description, self.isWeakness, self.state) = (topic, description, isWeakness, state)
    }

    init(_ topic: Topic, _ name: String, _ found: String, _ expected: String, isWeakness: Bool) {
      self.init(topic, "\(name) is \(found), not \(expected)", isWeakness: isWeakness) {
        TopicPlanTests.state($0, [name: found])
      }
    }
  }

  static let rows = [
    Row(.accountEvents, "partitions is 3, not 12", isWeakness: false) { state($0, partitions: 3) },
    Row(.accountEvents, "replication is 2, not 3", isWeakness: true) { state($0, replication: 2) },
    Row(.accountEvents, "replication is 4, not 3", isWeakness: false) { state($0, replication: 4) },
    Row(.accountEvents, "min.insync.replicas", "1", "2", isWeakness: true),
    Row(.accountEvents, "min.insync.replicas", "3", "2", isWeakness: false),
    Row(.accountEvents, "retention.ms", "604800000", "1209600000", isWeakness: true),
    Row(.accountEvents, "retention.ms", "-1", "1209600000", isWeakness: false),
    Row(.outcomes, "retention.ms", "604800000", "-1", isWeakness: true),
    // As it was made by earlier versions: what was decided about would keep the person.
    Row(.quarantine, "cleanup.policy", "delete", "compact", isWeakness: true),
    Row(.quarantine, "max.compaction.lag.ms", "9223372036854775807", "604800000", isWeakness: false),
    Row(.accountEvents, "retention.bytes", "1000000", "-1", isWeakness: true),
    Row(.accountEvents, "cleanup.policy", "compact", "delete", isWeakness: true),
    Row(.signingKeys, "cleanup.policy", "delete", "compact", isWeakness: true),
    Row(.emailRelay, "max.compaction.lag.ms", "9223372036854775807", "604800000", isWeakness: false),
    Row(.deadLetters(of: .emailRelay), "cleanup.policy", "delete", "compact", isWeakness: true),
    Row(.signingKeys, "cleanup.policy", "compact,delete", "compact", isWeakness: true),
    Row(.accountEvents, "message.timestamp.type", "CreateTime", "LogAppendTime", isWeakness: true),
    Row(.accountEvents, "max.message.bytes", "999999", "1048588", isWeakness: true),
    Row(.quarantine, "unclean.leader.election.enable", "true", "false", isWeakness: true),
    Row(.accountEvents, "min.insync.replicas is unknown, not 2", isWeakness: true) {
      state($0, ["min.insync.replicas": nil as String?])
    },
  ]

  @Test(arguments: rows) func saysWhatIsOtherThanItIsToBe(_ row: Row) throws {
    let plan = try #require(Self.plans.first { $0.topic == row.topic })
    let differences = plan.differences(from: row.state(plan))
    #expect(differences.map(\.description) == ["\(row.topic): \(row.description)"])
    #expect(differences.map(\.isWeakness) == [row.isWeakness])
  }

  @Test func aKeyOutlivesEveryRetentionOfTheCluster() throws {
    let plan = try #require(Self.plans.first { $0.topic == .signingKeys })
    #expect(plan.differences(from: Self.state(plan, ["retention.ms": "1000"])) == [])
  }

  /// 1000012 was Kafka's own default once.
  @Test(arguments: ["1000012", "1048576", "1048588", "8000000"])
  func aTopicThatTakesAnyBatchIsAsItIsToBe(_ bytes: String) throws {
    let plan = try #require(Self.plans.first { $0.topic == .accountEvents })
    #expect(plan.differences(from: Self.state(plan, ["max.message.bytes": bytes])) == [])
  }

  @Test func oneBrokerIsEnoughWhereThatWasSaid() {
    #expect(Set(TopicPlan.all(partitions: 4, replication: 1).map(\.minimumInSync)) == [1])
    #expect(Set(TopicPlan.all(partitions: 4, replication: 2).map(\.minimumInSync)) == [2])
    let plans = TopicPlan.all(partitions: 4, replication: 2, consumers: ["newsletter"])
    #expect(plans.map(\.partitions) == [4, 1, 1, 4, 4, 1, 4])
    #expect(plans.last?.topic.name == "apple.account-events.newsletter.retry.v1")
  }
}
