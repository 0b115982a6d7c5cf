import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Cryptography
import EventLoop
import Kafka
import TestSupport
import Testing

/// What becomes of a running consumer whose topic loses records, or is made anew: see docs/reliability.md.
@Loop @Suite(.serialized, RealBroker.isThere, .disabled(if: LongTrial.isAsked), .timeLimit(.minutes(30)))
struct ConsumerEdgeReliabilityTests {
  private nonisolated static let patience = Duration.seconds(300)
  private func metric(_ name: String) -> String { #"siwa_consumer_\#(name){consumer="email-relay"}"# }

  @Test func whatRetentionTakesWhileAConsumerIsAwayIsSaidAndTheRestProcessed() async throws {
    try await run { stage, admin, send in
      let first = try await stage.start(.emailRelay)
      try await send(1...4)
      try await untilKnown(4, first, stage)
      let progress = try GroupProgress(stage.broker.bootstrapServers)
      try await until(every: .milliseconds(100)) { try await progress.isDone(.emailRelay) }
      await progress.close()
      #expect(try await first.end() == .exit(0))
      try await send(5...12)
      let place = TopicPartition(Topic.accountEvents.name, 0)
      _ = try await admin.deleteRecords(before: [place: 9], within: Self.patience)
      let second = try await stage.start(.emailRelay)
      try await untilKnown(12, second, stage)
      try await until { try await second.metric(metric("records_missing_total")) == 5 }
      #expect(try await second.metric(metric("partitions_begun_anew_total")) == 0)
      let line = try #require(second.program.errors.split(separator: "\n").first { $0.contains("records are missing") })
      #expect(line.contains(#""level":"error""#) && line.contains(#""kafka.partition":0"#), "\(line)")
      #expect(line.contains(#""kafka.firstMissing":4"#) && line.contains(#""kafka.lastMissing":8"#), "\(line)")
      // What retention took is known to nobody.
      #expect(try await second.mayBeSent(to: Self.person(7).subject, token: stage.token).text.contains("unknown"))
      #expect(try await second.end() == .exit(0))
    }
  }

  @Test(arguments: [true, false])
  func aTopicThatIsMadeAnewIsProcessedFromItsBeginning(isRunning: Bool) async throws {
    try await run { stage, admin, send in
      var member = try await stage.start(.emailRelay)
      try await send(1...6)
      try await untilKnown(6, member, stage)
      let progress = try GroupProgress(stage.broker.bootstrapServers)
      try await until(every: .milliseconds(100)) { try await progress.isDone(.emailRelay) }
      if !isRunning { #expect(try await member.end() == .exit(0)) }
      try await stage.broker.deleteTopic(Topic.accountEvents.name)
      let plan = try #require(TopicPlan.all(partitions: 1, replication: 1).first { $0.topic == .accountEvents })
      try await until(every: .milliseconds(100)) {
        try await admin.createTopics([plan.newTopic], within: Self.patience) == [plan.topic.name]
      }
      _ = try await admin.awaitTopic(plan.topic.name, within: Self.patience)
      // More than there were before: the group's offset lies among them.
      try await send(11...20)
      if !isRunning { member = try await stage.start(.emailRelay) }
      for number in 11...20 { try await untilKnown(number, member, stage) }
      #expect(try await member.metric(metric("records_missing_total")) == 0)
      try await until(every: .milliseconds(100)) { try await progress.isDone(.emailRelay) }
      await progress.close()
      #expect(try await member.end() == .exit(0))
    }
  }

  @Test func whoHasNoTopicIsNotReadyAndWhoHasNoShareIs() async throws {
    try await run { stage, _, send in
      let members = [try await stage.start(.emailRelay), try await stage.start(.emailRelay)]
      for member in members {
        try await until(every: .milliseconds(100)) { try await member.get("/readyz").status == 200 }
      }
      var held: [Double] = []
      try await until(every: .milliseconds(100)) {
        held = []
        for member in members { held.append(try await member.metric(metric("partitions"))) }
        return held.reduce(0, +) == 2
      }
      try await stage.broker.deleteTopic(Topic.retries(of: .emailRelay).name)
      for member in members {
        try await until(every: .milliseconds(100)) {
          let answer = try await member.get("/readyz")
          return answer.status == 503 && answer.text.contains("group: not ready: unknownTopic")
        }
      }
    }
  }

  private nonisolated static func person(_ number: Int) -> Person { Person(named: "holder \(number)") }

  /// Waits until a mailer is told of that person what their event said.
  private func untilKnown(_ number: Int, _ member: RunningMember, _ stage: ConsumerStage) async throws {
    try await until(every: .milliseconds(50)) {
      try await member.mayBeSent(to: Self.person(number).subject, token: stage.token).status == 200
        || member.program.hasEnded
    }
  }

  /// One partition a topic, so that offsets are numbers of events.
  private func run(
    _ body: @Loop (ConsumerStage, Admin, @Loop (ClosedRange<Int>) async throws -> Void) async throws -> Void
  ) async throws {
    // Nobody asks Apple here.
    let apple = AppleSide(
      origin: "https://127.0.0.1:9", certificate: "/nowhere", privateKey: "/nowhere",
      key: DeveloperKey(id: "ABC123DEFG", privateKeyPEM: try P256PrivateKey().pem()))
    let form = ConsumerStage.Form(partitions: 1)
    try await ConsumerStage.run(try await RealBroker(), apple, in: TemporaryDirectory(), form) { stage in
      let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", stage.broker.bootstrapServers)])
      let producer = try Producer(configuration, deadline: Self.patience, log: { _ in })
      let admin = try Admin(configuration, log: { _ in })
      try await body(stage, admin) { numbers in
        for number in numbers { _ = try await producer.send(KafkaRecord(of: try Self.event(number))) }
      }
      await producer.close(within: .seconds(10))
      await admin.close()
    }
  }

  private nonisolated static func event(_ number: Int) throws -> AccountEvent {
    let account = try ConsumerStage.account(person(number))
    return AccountEvent(
      id: try #require(EventID("event-\(number)")), team: account.team,
      audience: try #require(ClientID(AppleSide.app)), subject: account.subject,
      kind: .emailDisabled(try #require(RelayAddress(person(number).address)), isPrivate: true),
      occurredAt: .now - .seconds(60), issuedAt: .now)
  }
}
