import AccountServices
import Configuration
import EventLoop
import JSON
import Kafka

/// `siwa topics list`: our topics as they are.
struct TopicsList: Command {
  static let name = "topics list"
  static let summary = "Lists the topics of the programs as they are in the cluster."
  static let details = """
    Exit codes: 0 listed, 2 the command line or the configuration has to change first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa topics list", "With the cluster that /etc/siwa/siwa.yaml names."),
    CommandExample("siwa topics list --set kafka.bootstrap.servers=localhost:9092 --json", "For another program."),
  ]

  private let access: TopicsAccess

  init(reading arguments: inout CommandArguments) { access = TopicsAccess(reading: &arguments) }

  func run() async -> ExitCode {
    await access.run { admin throws(KafkaError) in
      let names = try await admin.describeTopics(within: TopicsAccess.patience).map(\.name)
      var rows: [(name: String, state: TopicState)] = []
      for name in names where name.hasPrefix("apple.") {
        guard let state = try await admin.state(of: name, within: TopicsAccess.patience) else { continue }
        rows.append((name, state))
      }
      if access.isJSON {
        access.say(.array(rows.map { $0.state.json(named: $0.name) }))
      } else {
        for row in rows { Terminal.say("\(row.name): \(row.state.words)") }
        if rows.isEmpty { Terminal.say("There are none. 'siwa topics create' makes them.") }
      }
      return .success
    }
  }
}
