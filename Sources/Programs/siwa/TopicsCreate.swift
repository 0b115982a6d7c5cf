import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON
import Kafka

/// `siwa topics create`: makes what is missing.
struct TopicsCreate: Command {
  static let name = "topics create"
  static let summary = "Makes the topics of the programs that are missing, and says which."
  static let details = """
    Nothing that is there is changed: 'siwa topics compare' says whether it is as it is to be. A cluster of one broker
    takes --replication 1 only: fine for trying things out, and no copy is left when that broker's disk is lost.

    Exit codes: 0 all topics are there, 1 one could not be made, 2 the command line or the configuration has to change
    first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa topics create", "Twelve partitions of account events, three copies of everything."),
    CommandExample(
      "siwa topics create --replication 1 --set kafka.bootstrap.servers=localhost:9092", "On one broker, to try things."
    ),
  ]

  private let access: TopicsAccess
  private let plans: [TopicPlan]

  init(reading arguments: inout CommandArguments) {
    access = TopicsAccess(reading: &arguments)
    plans = TopicPlan.all(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.run { admin throws(KafkaError) in
      var made: Set<String> = []
      for plan in plans {
        // One after another, so that what was made is said even where the next one cannot be.
        let isNew = !(try await admin.createTopics([plan.newTopic], within: TopicsAccess.patience)).isEmpty
        if isNew { made.insert(plan.topic.name) }
        if !access.isJSON {
          Terminal.say("\(plan.topic): \(isNew ? "made: \(plan.state.words)" : "is there already, and stays as it is")")
        }
      }
      // Brokers come to know of a topic one after the other: whoever comes next is to find it.
      for name in made.sorted() { _ = try await admin.awaitTopic(name, within: TopicsAccess.patience) }
      if access.isJSON {
        access.say(
          .array(plans.map { ["name": .string($0.topic.name), "made": .boolean(made.contains($0.topic.name))] }))
      }
      return .success
    }
  }
}
