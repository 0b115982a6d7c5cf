import AccountEvents
import EventLoop
import Foundation
import Glibc
import Kafka
import TestSupport
import Testing

/// Three brokers of Apache Kafka, each of which can be killed, frozen and started again, and the network before them.
@Loop
final class BreakableCluster {
  private static let partitions: Int32 = 12
  /// As README.md has them made. With the producer's time, a clock that is ahead has every record refused, and one that
  /// is far behind has them deleted before their time.
  private static let settings = ["message.timestamp.type": "LogAppendTime"]

  /// The cluster that all tests of the process share: whoever breaks it mends it.
  static func shared() async throws -> BreakableCluster { try await sharedCluster.value }

  private nonisolated static let sharedCluster = Task { try await BreakableCluster() }

  /// The way to the brokers that nothing breaks: for whoever checks.
  let straight: String
  /// The network before each broker.
  let doors: [BrokerDoor]
  /// The way through it.
  var bootstrapServers: String { doors.map { "\($0.address)" }.joined(separator: ",") }

  private let launcher: RunningProgram
  private let files = TemporaryDirectory()
  private var brokers: [(process: pid_t, starts: Int)] = []

  private init() async throws {
    doors = [try BrokerDoor(), try BrokerDoor(), try BrokerDoor()]
    let home = try #require(RealBroker.home)
    launcher = try RunningProgram(
      Repository.root + "/Tests/run-cluster", [home] + doors.map { "\($0.address.port)" },
      LongTrial.isAsked ? ["KAFKA_OPTS": ""] : [:], endsWithItsInput: true)
    straight = try await launcher.outputLine(with: "127.0.0.1:", ",127.0.0.1:")
    for index in doors.indices { brokers.append((try await process(of: index, start: 1), 1)) }
    let admin = try Admin(try KafkaConfiguration(properties: [("bootstrap.servers", straight)]), log: { _ in })
    _ = try await admin.createTopics(
      [
        NewTopic(
          Topic.accountEvents.name, partitions: Int(Self.partitions), replicationFactor: 3, settings: Self.settings),
        NewTopic(Topic.quarantine.name, partitions: 1, replicationFactor: 3, settings: Self.settings),
        NewTopic(Topic.signingKeys.name, partitions: 1, replicationFactor: 3, settings: Self.settings),
      ], within: .seconds(300))
    for topic in [Topic.accountEvents, .quarantine, .signingKeys] {
      _ = try await admin.awaitTopic(topic.name, within: .seconds(300))
    }
    await admin.close()
  }

  /// Kills a broker as a power cut would; it stays dead until `start`.
  func kill(_ broker: Int) {
    Glibc.kill(brokers[broker].process, SIGKILL)
    brokers[broker].process = 0
  }

  /// Starts the brokers that are dead on their data, and waits until all take clients.
  func startDead() async throws {
    let dead = brokers.indices.filter { brokers[$0].process == 0 }
    for broker in dead { try launcher.write("start \(broker + 1)\n") }
    for broker in dead {
      let start = brokers[broker].starts + 1
      brokers[broker] = (try await process(of: broker, start: start), start)
    }
  }

  /// Has these brokers, each by its place among `doors`, keep a partition of the account events.
  func assign(partition: Int, to brokers: [Int]) async throws {
    let identifiers = brokers.map { $0 + 1 }
    let plan = files.write(
      "plan.json",
      #"{"version":1,"partitions":[{"topic":"\#(Topic.accountEvents.name)","partition":\#(partition),"#
        + #""replicas":\#(identifiers)}]}"#)
    try await run("kafka-reassign-partitions.sh", "--reassignment-json-file", plan, "--execute")
    // The brokers copy what stands there after that.
    try await until {
      try await run("kafka-reassign-partitions.sh", "--reassignment-json-file", plan, "--verify")
        .contains("is completed")
    }
  }

  /// The partitions of the account events that have fewer copies in step than what is acknowledged must have.
  func shortPartitions() async throws -> [Int] {
    let lines = try await run(
      "kafka-topics.sh", "--describe", "--topic", Topic.accountEvents.name, "--under-min-isr-partitions")
    return lines.split(separator: "\n").compactMap { line in
      line.range(of: "Partition: ").flatMap { Int(line[$0.upperBound...].prefix(while: \.isNumber)) }
    }
  }

  /// Sets a property of a topic; with nil it is again what the brokers have.
  func configure(_ topic: Topic, _ property: String, to value: Int?) async throws {
    let change = value.map { ["--add-config", "\(property)=\($0)"] } ?? ["--delete-config", property]
    try await run(
      "kafka-configs.sh", ["--alter", "--entity-type", "topics", "--entity-name", topic.name] + change)
  }

  /// Runs one of Kafka's own tools.
  @discardableResult
  private func run(_ tool: String, _ words: String...) async throws -> String { try await run(tool, words) }

  @discardableResult
  private func run(_ tool: String, _ words: [String]) async throws -> String {
    let home = try #require(RealBroker.home)
    let outcome = try await RunningProgram.finish(
      path: "\(home)/bin/\(tool)", ["--bootstrap-server", straight] + words)
    try #require(outcome.end == .exit(0), "\(tool): \(outcome.output)\(outcome.errors)")
    return outcome.output
  }

  /// Stops a broker where it stands, connections open.
  func freeze(_ broker: Int) { Glibc.kill(brokers[broker].process, SIGSTOP) }

  /// Lets a frozen broker go on.
  func thaw(_ broker: Int) { Glibc.kill(brokers[broker].process, SIGCONT) }

  /// The process of a broker, once it takes clients; and what is behind its door from then on.
  private func process(of broker: Int, start: Int) async throws -> pid_t {
    let line = try await launcher.outputLine(with: "broker \(broker + 1) is ", "start \(start)")
    let words = line.split { " ,".contains($0) }
    let address: SocketAddress = try #require(SocketAddress(String(words[5])))
    doors[broker].broker = address
    return try #require(pid_t(words[3]))
  }
}
