import AppleSimulator
import EventLoop
import HTTPClient
import Kafka
import TestSupport
import Testing

/// `siwa topics` on a broker of its own, and what the ingress says about what it finds there.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct TopicsTests {
  private func finish(
    _ words: String..., on brokers: String
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let setting = ["--set", "kafka.bootstrap.servers=\(brokers)"]
    return try await RunningProgram.run("siwa", ["topics"] + words + setting, ["SIWA_CONFIG": "/dev/null"]) { program in
      try await program.outcome()
    }
  }

  @Test func topicsAreMadeOnceAndComparedWithWhatTheyAreToBe() async throws {
    let broker = try await RealBroker()
    let brokers = broker.bootstrapServers
    let names =
      [
        "apple.account-events.v1", "apple.account-events.quarantine.v1", "apple.signing-keys.v1",
        "apple.account-outcomes.v1", "apple.email-relay.v1",
      ]
      + ["token-revoker", "data-eraser", "email-relay"].flatMap {
        ["apple.account-events.\($0).dead-letters.v1", "apple.account-events.\($0).retry.v1"]
      }

    let missing = try await finish("compare", on: brokers)
    #expect(missing.end == .exit(1) && missing.errors == "")
    #expect(missing.output == names.map { "\($0) is missing (weakness)\n" }.joined())
    // One broker cannot keep three copies, and nothing is made that is less than what was asked for.
    let impossible = try await finish("create", on: brokers)
    #expect(impossible.end == .exit(1) && impossible.output == "" && impossible.errors.contains("replication factor"))

    let made = try await finish("create", "--replication", "1", "--partitions", "4", on: brokers)
    #expect(made.end == .exit(0) && made.errors == "")
    for name in names { #expect(made.output.contains("\(name): made: partitions ")) }
    let again = try await finish("create", "--json", "--replication", "1", on: brokers)
    #expect(again.end == .exit(0))
    #expect(again.output == "[\(names.map { #"{"name":"\#($0)","made":false}"# }.joined(separator: ","))]\n")

    let same = try await finish("compare", "--replication", "1", "--partitions", "4", "--json", on: brokers)
    #expect(same.end == .exit(0) && same.output == "[]\n" && same.errors == "")
    let other = try await finish("compare", "--replication", "1", "--json", on: brokers)
    #expect(other.end == .exit(1) && other.errors == "")
    let divided = names.filter {
      !["quarantine", "signing-keys", "dead-letters", "apple.email-relay"].contains(where: $0.contains)
    }
    let differences = divided.map {
      #"{"name":"\#($0)","aspect":"partitions","expected":"12","found":"4","weakness":false}"#
    }
    #expect(other.output == "[\(differences.joined(separator: ","))]\n")
    let list = try await finish("list", on: brokers)
    #expect(list.end == .exit(0))
    #expect(
      list.output.contains(
        "apple.account-events.v1: partitions 4, replication 1, min.insync.replicas 1, cleanup.policy delete, "
          + "retention.ms 1209600000\n"))

    // The ingress runs on what is there, and says that it is not much.
    try await Stage.run(brokers: brokers) { stage in
      try await stage.ingress { ingress in
        for (topic, aspect) in [
          (names[0], "replication"), (names[0], "min.insync.replicas"), (names[1], "replication"),
        ] {
          _ = try await ingress.program.line(with: "a topic is less durable than it is to be", topic, aspect)
        }
        try await ingress.untilReady()
        try await until { try await ingress.get("/metrics").text.contains("siwa_topic_weaknesses 6\n") }
        #expect(try await ingress.end() == .exit(0))
      }
    }
  }

  /// Topics as a stock broker makes them have one partition, one copy, and forget after a week.
  @Test func whatIsStartedBeforeItsTopicsWaitsForThemAndHasNoBrokerMakeThem() async throws {
    let broker = try await RealBroker(["auto.create.topics.enable=true"])
    let brokers = broker.bootstrapServers
    try await Stage.run(brokers: brokers) { stage in
      try await stage.ingress(["SIWA_INGRESS_DEADLINES_PUBLISH": "2s"]) { ingress in
        try await until { try await ingress.get("/readyz").text.contains("kafka: replaced: the spool takes over") }
        #expect(try await ingress.post(stage.sign().body).status == 200)
        try await until { try await ingress.get("/readyz").text.contains("kafka: replaced: the spool takes over") }
        let none = try await finish("list", on: brokers)
        #expect(none.output == "There are none. 'siwa topics create' makes them.\n", "\(none)")

        let made = try await finish("create", "--replication", "1", "--partitions", "4", on: brokers)
        #expect(made.end == .exit(0) && !made.output.contains("is there already"), "\(made)")
        try await until { try await ingress.get("/metrics").text.contains("\nsiwa_spool_records 0\n") }
        let admin = try Admin(KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), log: { _ in })
        #expect(
          try await admin.endOffsets(of: "apple.account-events.v1", within: .seconds(300)).values.reduce(0, +) == 1)
        await admin.close()
        #expect(try await ingress.end() == .exit(0))
      }
    }
    #expect(try await finish("compare", "--replication", "1", "--partitions", "4", on: brokers).end == .exit(0))
  }

  @Test func aClusterThatCannotBeAskedIsNotOneThatDiffers() async throws {
    let outcome = try await finish("compare", on: "127.0.0.1:9")
    #expect(outcome.end == .exit(3) && outcome.output == "")
    #expect(outcome.errors.contains("siwa: kafka: "))
  }
}
