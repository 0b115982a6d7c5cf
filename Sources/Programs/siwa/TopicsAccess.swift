import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import JSON
import Kafka

/// What the commands about topics have in common: which cluster, and how they tell what they found.
struct TopicsAccess {
  /// How long the cluster may take for an answer.
  static let patience = Duration.seconds(30)

  let isJSON: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    options = ConfigurationOptions(reading: &arguments)
    isJSON = arguments.flag("--json", "Says it as one line of JSON.")
  }

  /// Runs `body` with the cluster that the configuration names.
  @Loop
  func run(_ body: @Loop (Admin) async throws(KafkaError) -> ExitCode) async -> ExitCode {
    await options.withKafka { configuration, log throws(KafkaError) in
      try await Admin.run(configuration, log: log, body)
    }
  }

  func say(_ value: JSONValue) { Terminal.say(String(decoding: value.bytes, as: UTF8.self)) }
}

extension TopicState {
  /// For people.
  var words: String {
    let shown: [TopicAspect] = [.minimumInSync, .cleanup, .retention]
    let settings = shown.compactMap { aspect in self[aspect].map { "\(aspect.rawValue) \($0)" } }
    let counts = ["partitions \(partitions)", "replication \(replication)"]
    return (counts + settings).joined(separator: ", ")
  }

  /// For programs.
  func json(named name: String) -> JSONValue {
    let settings = TopicAspect.allCases.compactMap { aspect in
      self[aspect].map { JSONValue.Member(aspect.rawValue, .string($0)) }
    }
    return [
      "name": .string(name), "partitions": .integer(Int64(partitions)), "replication": .integer(Int64(replication)),
      "settings": .object(settings),
    ]
  }
}

extension TopicDifference {
  /// For programs.
  var json: JSONValue {
    [
      "name": .string(topic.name), "aspect": .string(aspect.rawValue), "expected": .string(expected),
      "found": found.map { .string($0) } ?? .null, "weakness": .boolean(isWeakness),
    ]
  }
}

extension SettingType where Value == ConsumerName {
  static var consumerName: SettingType {
    SettingType(
      "consumer", expected: "the name of a consumer (small letters, digits, hyphens), such as token-revoker",
      standIn: "token-revoker", show: \.text, parse: { ConsumerName($0) })
  }
}

extension TopicPlan {
  /// The plans with what the command line says.
  static func all(reading arguments: inout CommandArguments) -> [TopicPlan] {
    all(
      partitions: arguments.read(
        "--partitions", "NUMBER", .integer(1...1000), default: 12,
        "Partitions of the account events: as many consumers can share the work."),
      replication: arguments.read(
        "--replication", "NUMBER", .integer(1...9), default: 3, "How many brokers keep each record."),
      consumers: consumers
        + arguments.readAll(
          "--consumer", "NAME", .consumerName,
          "A consumer of your own, whose topics are to be there too; may be repeated."
        ))
  }

  /// The topic once it is as it is to be.
  var state: TopicState {
    TopicState(partitions: partitions, replication: replication, settings: newTopic.settings)
  }
}
