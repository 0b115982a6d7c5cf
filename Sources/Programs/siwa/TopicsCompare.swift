import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON
import Kafka

/// `siwa topics compare`: whether our topics are as they are to be.
struct TopicsCompare: Command {
  static let name = "topics compare"
  static let summary = "Says in what the topics are other than they are to be. Changes nothing."
  static let details = """
    A weakness is a difference for which records can be lost that were to be kept. What is to change is changed with
    Kafka's own tools, such as 'kafka-configs.sh --bootstrap-server SERVER --command-config FILE --alter --entity-type topics
    --entity-name TOPIC --add-config NAME=VALUE'; the number of partitions can grow only, and users then move between
    partitions: their order holds again once what is there is read. apple.email-relay.v1 stays with the number that it was
    made with, and any is right: partitions that were added would leave the addresses of before where no tombstone reaches
    them.

    Exit codes: 0 all is as it is to be, 1 something is not, 2 the command line or the configuration has to change first,
    3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample(
      "siwa topics compare", "Against twelve partitions of account events and three copies of everything."),
    CommandExample("siwa topics compare --partitions 24 --json", "Against what you have decided, for another program."),
  ]

  private let access: TopicsAccess
  private let plans: [TopicPlan]

  init(reading arguments: inout CommandArguments) {
    access = TopicsAccess(reading: &arguments)
    plans = TopicPlan.all(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.run { admin throws(KafkaError) in
      var differences: [TopicDifference] = []
      for plan in plans {
        let found = plan.differences(from: try await admin.state(of: plan.topic.name, within: TopicsAccess.patience))
        differences += found
        if access.isJSON { continue }
        for difference in found { Terminal.say("\(difference)\(difference.isWeakness ? " (weakness)" : "")") }
        if found.isEmpty { Terminal.say("\(plan.topic): as it is to be") }
      }
      if access.isJSON { access.say(.array(differences.map(\.json))) }
      return differences.isEmpty ? .success : .failure
    }
  }
}
