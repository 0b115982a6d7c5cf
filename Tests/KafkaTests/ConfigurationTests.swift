import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Kafka

@Loop @Suite struct ConfigurationTests {
  nonisolated static let refusals: [(property: String, value: String, words: String)] = [
    ("bogus", "1", #"No such configuration property: "bogus""#),
    ("socket.timeout.ms", "soon", #"Invalid value for configuration property "socket.timeout.ms""#),
    ("socket.timeout.ms", "1", #"Configuration property "socket.timeout.ms" value 1 is outside allowed range"#),
    ("security.protocol", "telnet", #"Invalid value "telnet" for configuration property "security.protocol""#),
    ("dr_msg_cb", "1", #"Property "dr_msg_cb" must be set through dedicated .._set_..() function"#),
  ]

  @Test(arguments: refusals) func refusesAPropertyInLibrdkafkasWords(
    _ row: (property: String, value: String, words: String)
  ) throws {
    let error = #expect(throws: KafkaError.self) { try KafkaConfiguration(properties: [(row.property, row.value)]) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.detail.hasPrefix(row.words) == true, "\(error?.detail ?? "")")
  }

  @Test func tellsAllFaultsTogether() {
    let error = #expect(throws: KafkaError.self) {
      try KafkaConfiguration(properties: [("bogus", "1"), ("linger.ms", "1"), ("wrong", "2")])
    }
    #expect(
      error?.detail == #"No such configuration property: "bogus"; No such configuration property: "wrong""#)
  }

  nonisolated static let contradictions: [(property: String, value: String)] = [
    ("enable.idempotence", "false"), ("acks", "1"), ("request.required.acks", "0"), ("message.timeout.ms", "1000"),
    ("delivery.timeout.ms", "0"), ("delivery.report.only.error", "true"), ("transactional.id", "t"),
    ("log.queue", "true"), ("allow.auto.create.topics", "true"), ("partitioner", "random"),
    ("partitioner", "consistent_random"), ("topic.blacklist", "^apple"),
  ]

  @Test(arguments: contradictions) func aProducerSaysWhatItDependsOn(_ row: (property: String, value: String)) throws {
    let error = #expect(throws: KafkaError.self) { try producer([row]) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.detail.hasPrefix("\(row.property) cannot be set to anything but ") == true)
  }

  @Test(arguments: [("enable.idempotence", "true"), ("acks", "all"), ("request.required.acks", "-1")])
  func aProducerTakesWhatItDependsOnWhenItIsSaidToo(property: String, value: String) async throws {
    _ = try await producer([(property, value)]).close(within: .zero)
  }

  @Test(arguments: [
    ("enable.auto.commit", "true"), ("group.id", "other"), ("group.instance.id", "other"), ("log.queue", "true"),
    ("partition.assignment.strategy", "range"), ("auto.offset.reset", "latest"), ("auto.offset.reset", "error"),
    ("allow.auto.create.topics", "true"), ("topic.blacklist", "^apple"),
  ])
  func aConsumerSaysWhatItDependsOn(property: String, value: String) throws {
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", "127.0.0.1:9"), (property, value)])
    let error = #expect(throws: KafkaError.self) {
      try Consumer(
        configuration, group: GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(1)),
        log: { _ in })
    }
    #expect(error?.detail.hasPrefix("\(property) cannot be set to anything but ") == true)
  }

  @Test func whoNeverAsksAgainWhatThereIsIsRefused() throws {
    let property = "topic.metadata.refresh.interval.ms"
    for kind in [KafkaConfiguration.ClientKind.consumer(nil), .producer(deadline: .seconds(5))] {
      for value in ["-1", "0"] {
        #expect(try configuration([(property, value)]).contradictions(to: kind).map(\.property) == [property])
      }
      #expect(try configuration([(property, "1000")]).contradictions(to: kind).isEmpty)
    }
  }

  @Test func anAdminMakesNoTopicsByAskingForThem() throws {
    let configuration = try configuration([("allow.auto.create.topics", "true")])
    let error = #expect(throws: KafkaError.self) { try Admin(configuration, log: { _ in }) }
    #expect(error?.detail.hasPrefix("allow.auto.create.topics cannot be set to anything but false: ") == true)
  }

  @Test(arguments: ["earliest", "smallest", "beginning"])
  func aConsumerTakesAllNamesOfTheBeginning(_ value: String) async throws {
    await (try Consumer(configuration([("auto.offset.reset", value)]), group: nil, log: { _ in })).close()
  }

  @Test func aMemberIsNotPutOutWhileItHandsOver() throws {
    let group = GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(5))
    func contradictions(_ value: String) throws -> [KafkaConfiguration.Contradiction] {
      try configuration([("max.poll.interval.ms", value)]).contradictions(to: .consumer(group))
    }
    #expect(try contradictions("9999").map(\.property) == ["max.poll.interval.ms"])
    #expect(try contradictions("9999").first?.words.hasPrefix("cannot be less than 10000: ") == true)
    #expect(try contradictions("10000") == [])
  }

  nonisolated static let kinds: [KafkaConfiguration.ClientKind] = [
    .producer(deadline: .seconds(1)), .admin, .consumer(nil),
    .consumer(GroupMembership(ConsumerGroup("mine"), instance: "a", handover: .seconds(5))),
  ]

  @Test(arguments: kinds) func whatLibrdkafkaHasAgainstTheWholeIsSaidWithoutConnecting(
    _ kind: KafkaConfiguration.ClientKind
  ) throws {
    let sound = [[], [("security.protocol", "ssl")]] as [[(String, String)]]
    for properties in sound { #expect(try configuration(properties).refusal(byClient: kind) == nil) }
    let unsound = [
      [("security.protocol", "ssl"), ("ssl.ca.location", "/nowhere")],
      [("security.protocol", "sasl_ssl"), ("sasl.mechanism", "SCRAM-SHA-512")],
      [("security.protocol", "ssl"), ("ssl.key.pem", "hush-hush")],
    ]
    for properties in unsound {
      let words = try #require(try configuration(properties).refusal(byClient: kind), "\(properties)")
      #expect(words != "" && !words.contains("hush"))
    }
  }

  @Test func aTokenComesFromAFileThatIsThere() throws {
    let files = TemporaryDirectory()
    let mechanism = [("security.protocol", "sasl_ssl"), ("sasl.mechanism", "OAUTHBEARER")]
    let missing = try configuration(mechanism).contradictions(to: .admin)
    #expect(missing.map(\.property) == ["sasl.mechanism"])
    #expect(missing.first?.words.contains("sasl.oauthbearer.token.file") == true)
    let property = "sasl.oauthbearer.token.file"
    let token = files.write("token", "eyJ.eyJ.e30\n")
    #expect(KafkaConfiguration.fault(property: property, value: token) == nil)
    #expect(try configuration(mechanism + [(property, token)]).refusal(byClient: .admin) == nil)
    // Nobody writes into the pipe: it does not hold the program up.
    let pipe = files.path + "/pipe"
    #expect(unsafe mkfifo(pipe, 0o600) == 0)
    for path in [pipe, files.path + "/nothing", files.write("empty", "\n"), files.write("binary", "\u{7f}")] {
      #expect(KafkaConfiguration.fault(property: property, value: path)?.contains(path) == true)
    }
  }

  @Test func defaultsOfAProgramYieldToWhatIsSet() throws {
    let files = TemporaryDirectory()
    let own = [
      ("max.poll.interval.ms", "10000"), ("sasl.mechanism", "OAUTHBEARER"), ("security.protocol", "sasl_ssl"),
      ("sasl.oauthbearer.token.file", files.write("token", "eyJ.eyJ.e30\n")),
    ]
    let group = GroupMembership(ConsumerGroup("mine"), instance: nil, handover: .seconds(5))
    for (properties, faults) in [(own, []), (Array(own.dropFirst()), ["max.poll.interval.ms"])] {
      let configuration = try configuration(properties).with(defaults: [("max.poll.interval.ms", "9999")])
      #expect(configuration.contradictions(to: .consumer(group)).map(\.property) == faults)
    }
  }

  @Test func wantsToKnowWhereTheClusterIs() throws {
    let error = #expect(throws: KafkaError.self) {
      try Admin(KafkaConfiguration(properties: []), log: { _ in })
    }
    #expect(error?.detail == "bootstrap.servers is missing")
  }

  @Test func saysWhatOnlyTheWholeIsWrongAbout() throws {
    let error = #expect(throws: KafkaError.self) { try producer([("max.in.flight", "6")]) }
    #expect(error?.detail.contains("max.in.flight") == true)
  }

  nonisolated static let secrets: [[(String, String)]] = [
    [("security.protocol", "ssl"), ("ssl.key.pem", "hush-hush")],
    [("security.protocol", "ssl"), ("ssl.keystore.location", "/nowhere"), ("ssl.keystore.password", "hush-hush")],
    [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "PLAIN"), ("sasl.password", "hush-hush")],
    [
      ("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "OAUTHBEARER"),
      ("enable.sasl.oauthbearer.unsecure.jwt", "true"), ("sasl.oauthbearer.config", "principal=p hush-hush"),
    ],
  ]

  @Test(arguments: secrets) func neverTellsASecret(_ properties: [(String, String)]) async throws {
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", "127.0.0.1:9")] + properties)
    #expect(!configuration.description.contains("hush-hush"))
    do {
      let producer = try Producer(configuration, deadline: .seconds(1), log: { _ in })
      _ = await producer.close(within: .zero)
    } catch {
      #expect(error.code == .invalidConfiguration)
      #expect(!error.detail.contains("hush"), "\(error.detail)")
    }
  }

  private func producer(_ properties: [(String, String)]) throws -> Producer {
    try Producer(configuration(properties), deadline: .seconds(1), log: { _ in })
  }

  private func configuration(_ properties: [(String, String)]) throws -> KafkaConfiguration {
    try KafkaConfiguration(properties: [("bootstrap.servers", "127.0.0.1:9")] + properties)
  }
}
