import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import Kafka
import TestSupport
import Testing
import TransparencyLog

/// The programs on a broker with TLS, SASL and access control, each with the rights of docs/security.md and no others.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct SecurityTests {
  @Test func eachProgramDoesItsWorkWithTheRightsOfTheTable() async throws {
    try await run { rehearsal in
      try await rehearsal.anEventHasAllItsEffects()
      try await rehearsal.anAuditorVerifiesTheLog()
      try await rehearsal.anOperatorDealsWithDeadLetters()
      try await rehearsal.anOperatorDealsWithQuarantine()
      try await rehearsal.everyDecisionIsLogged()
      try await rehearsal.anOperatorErasesAndSearches()
      try await rehearsal.anOperatorReplaysAndMovesAGroup()
      try await rehearsal.whatIsMissingIsSaid()
    }
  }

  @Test func aTokenFromAFileOpensTheBroker() async throws {
    let files = TemporaryDirectory()
    let secure = try await SecureBroker(users: [], in: files)
    func token(_ seconds: Int64) -> String {
      let now = Timestamp.now.milliseconds / 1000
      let parts = [#"{"alg":"none"}"#, #"{"sub":"somebody","iat":\#(now - 60),"exp":\#(now + seconds)}"#]
      let words = parts.map { part in
        Data(part.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
          "=", with: "")
      }
      return words.joined(separator: ".") + "."
    }
    for (text, isGood) in [(token(3600), true), (token(-30), false)] {
      let file = files.write("token-\(isGood)", text)
      let admin = try Admin(
        KafkaConfiguration(properties: secure.properties(withTokenIn: file)), log: { _ in })
      if isGood {
        _ = try await admin.describeTopics(within: .seconds(300))
      } else {
        await #expect(throws: KafkaError.self) { _ = try await admin.describeTopics(within: .seconds(2)) }
      }
      await admin.close()
    }
  }

  /// librdkafka before 2.6 sends its part of the nonce twice (its issue 4895), and brokers compare since 3.7.2.
  @Test func scramWorksWhereLibrdkafkaKeepsToIt() async throws {
    let secure = try await SecureBroker(users: [], in: TemporaryDirectory())
    let admin = try Admin(
      KafkaConfiguration(properties: secure.properties(as: "somebody", by: "SCRAM-SHA-512")), log: { _ in })
    if KafkaConfiguration.warning(property: "sasl.mechanism", value: "SCRAM-SHA-512") == nil {
      _ = try await admin.describeTopics(within: .seconds(300))
    } else {
      await #expect(throws: KafkaError.self) { _ = try await admin.describeTopics(within: .seconds(5)) }
    }
    await admin.close()
  }

  private func run(_ body: @Loop (SecureRehearsal) async throws -> Void) async throws {
    let files = TemporaryDirectory()
    try await SimulatorProgram.run(in: files) { simulator in
      let rules = try AccessRule.all()
      let secure = try await SecureBroker(users: Set(rules.map { AccessRule.user(of: $0.program) }), in: files)
      let access = try AccessControl(secure.broker.bootstrapServers)
      try access.grant(rules)
      for rule in rules { try await until { try access.isGranted(rule) } }
      try await SecureRehearsal.makeTopics(on: secure)
      try await ConsumerStage.run(secure.broker, simulator.side, in: files) { stage in
        try await body(SecureRehearsal(stage, simulator, secure, access, rules))
      }
    }
  }
}

@Loop
private final class SecureRehearsal {
  private let stage: ConsumerStage
  private let simulator: SimulatorProgram
  private let secure: SecureBroker
  private let access: AccessControl
  private let rules: [AccessRule]
  private let person = Person(named: "ada")
  private var ingress: RunningIngress?
  private var members: [RunningMember] = []
  private var auditLog: RunningAuditLog?
  private var brokers: String { stage.broker.bootstrapServers }

  init(
    _ stage: ConsumerStage, _ simulator: SimulatorProgram, _ secure: SecureBroker, _ access: AccessControl,
    _ rules: [AccessRule]
  ) {
    (self.stage, self.simulator, self.secure, self.access, self.rules) = (stage, simulator, secure, access, rules)
  }

  /// The administrator makes the topics.
  static func makeTopics(on secure: SecureBroker) async throws {
    let environment = secure.environment(as: "siwa-topics").merging(["SIWA_CONFIG": "/dev/null"]) { $1 }
    let size = ["--replication", "1", "--partitions", "3"]
    for words in [["create"] + size, ["compare"] + size, ["list"]] {
      let (end, output, errors) = try await RunningProgram.run("siwa", ["topics"] + words, environment) { program in
        try await program.outcome()
      }
      #expect(
        end == .exit(0) && errors == "" && output.contains("apple.account-events.v1"), "\(words): \(output)\(errors)")
    }
  }

  func anEventHasAllItsEffects() async throws {
    try await stage.signIn(person, code: try await simulator.signIn("ada"), at: .now - .seconds(3600))
    try stage.shop.welcome([person])
    let ingress = try await stage.startIngress(secure.environment(as: "siwa-ingress"))
    self.ingress = ingress
    for consumer in TopicPlan.consumers {
      members.append(try await stage.start(consumer, secure.environment(as: "siwa-\(consumer)")))
    }
    auditLog = try await stage.startAuditLog(secure.environment(as: "siwa-audit-log"))
    let url = try ingress.url
    try await simulator.order("team", ["team": AppleSide.team, "audiences": [AppleSide.app], "to": url.text])
    var expected = [try await simulator.notify(.emailEnabled, "ada", to: url) + ".relay-changed"]
    let mail = try #require(members.last)
    try await until { try await mail.mayBeSent(to: person.subject, token: stage.token).status == 200 }
    try await aPersonAsksForTheirDeletion()
    expected.append("deletion-of-bob.account-erased")
    let deletion = try await simulator.notify(.accountDelete, "ada", to: url)
    expected += ["tokens-revoked", "sessions-ended", "account-erased", "relay-changed"].map { "\(deletion).\($0)" }
    try await until(every: .milliseconds(100)) {
      let outcomes = try await TopicContents.read([.outcomes], brokers)[Topic.outcomes.name] ?? []
      return Set(expected).isSubset(of: outcomes.compactMap { $0.text(of: "ce_id") })
    }
    #expect(try stage.shop.customers().isEmpty)
    try await until { try await ingress.get("/readyz").text.contains("kafka: ready") }
    // All could be looked at: one broker keeps one copy, and that is said.
    for program in members.map(\.program) + [ingress.program] {
      _ = try await program.line(with: "a topic is less durable than it is to be")
      for words in ["nobody can say how durable", "authorization"] { #expect(!program.errors.contains(words)) }
    }
  }

  /// In the app: siwa-accounts publishes it.
  private func aPersonAsksForTheirDeletion() async throws {
    let accounts = try stage.launch("siwa-accounts", secure.environment(as: "siwa-accounts"))
    let bob = try ConsumerStage.account(Person(named: "bob"))
    _ = try await stage.store.recordSignIn(bob, at: .now - .seconds(3600), tokens: [])
    let asked = try await stage.store.requestDeletion(
      of: bob, in: try #require(ClientID(AppleSide.app)), as: try #require(EventID("deletion-of-bob")), at: .now)
    #expect(asked != nil)
    try await until(every: .milliseconds(100)) { try await stage.store.outbox().waiting == 0 }
    _ = try await accounts.line(with: "a topic is less durable than it is to be")
    for words in ["nobody can say how durable", "authorization"] { #expect(!accounts.errors.contains(words)) }
    accounts.signal(SIGTERM)
    #expect(try await accounts.untilEnd() == .exit(0))
  }

  func anAuditorVerifiesTheLog() async throws {
    try await until(every: .milliseconds(100)) {
      let complete = try await siwa("audit completeness")
      return complete.end == .exit(0) && complete.output.contains("Obligations  3, ")
    }
    let log = try #require(auditLog)
    try await log.untilReadiness(is: true)
    for words in ["authorization", #""level":"error""#] { #expect(!log.program.errors.contains(words)) }
    let verified = try await siwa("audit verify --records")
    #expect(verified.end == .exit(0), "\(verified)")
    #expect(verified.output.contains("Records     3 compared, 2 of them signed by Apple, "), "\(verified)")
    let bundle = try await siwa("audit bundle -o \(stage.files.path)/audit.tar")
    #expect(bundle.end == .exit(0) && bundle.errors == "", "\(bundle)")
  }

  /// What people decided about letters on the topics of four programs.
  func everyDecisionIsLogged() async throws {
    var expected: Set<String> = []
    for decision in ["released", "discarded"] { expected.insert("\(Topic.quarantine.name) \(decision)") }
    for consumer in TopicPlan.consumers {
      for decision in ["retried", "discarded"] {
        expected.insert("\(Topic.deadLetters(of: consumer).name) \(decision)")
      }
    }
    let key = stage.auditKey.key
    let trust = try LogTrust(origin: key.name, key: key, policy: .none)
    try await until(every: .milliseconds(100)) {
      var decided: Set<String> = []
      let log = try await AuditLog.open(LogDirectory(stage.auditLog), trusting: trust)
      try await log.entries(
        progress: { _, _ in },
        { _, entry in
          guard case .decision(let decision) = entry else { return }
          decided.insert("\(decision.source.origin.topic) \(decision.kind.rawValue)")
        })
      return decided == expected
    }
  }

  func anOperatorErasesAndSearches() async throws {
    let words = "--team \(AppleSide.team) --sub \(person.subject)"
    let found = try await siwa("erase --verify \(words)")
    #expect(found.end == .exit(0) && !found.errors.contains("siwa: "), "\(found)")
    for topic in TopicPlan.all(partitions: 1, replication: 1).map(\.topic.name) {
      #expect(found.output.contains("\(topic)  "), "\(topic): \(found)")
    }
    let asked = try await siwa("erase \(words) --reason tried --yes")
    #expect(asked.end == .exit(0) && asked.errors == "", "\(asked)")
    for line in ["reconcile --dry-run", "prune --older-than 60d --dry-run"] {
      let done = try await siwa("store \(line)")
      #expect(done.end == .exit(0), "\(line): \(done)")
      for words in ["siwa: ", "uthorization failed"] { #expect(!done.errors.contains(words), "\(line): \(done)") }
    }
  }

  func anOperatorDealsWithDeadLetters() async throws {
    let producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), deadline: .seconds(300), log: { _ in })
    let key = try ConsumerStage.account(Person(named: "bob")).key
    _ = try await producer.send(KafkaRecord(topic: Topic.accountEvents.name, key: key, value: Array("no event".utf8)))
    await producer.close(within: .seconds(10))
    for consumer in TopicPlan.consumers {
      var letter = ""
      try await until(every: .milliseconds(100)) {
        let list = try await siwa("dead-letters list --consumer \(consumer)")
        try #require(list.end == .exit(0) && list.errors == "", "\(list)")
        letter = list.output.split(separator: " ").first.map(String.init) ?? ""
        return list.output != "None waits.\n"
      }
      for words in ["show", "retry", "list"] {
        let choice = words == "list" ? "" : " --letter \(letter)"
        let done = try await siwa("dead-letters \(words) --consumer \(consumer)\(choice)")
        #expect(done.end == .exit(0) && !done.errors.contains("siwa: "), "\(words): \(done)")
      }
      try await until(every: .milliseconds(100)) {
        let list = try await siwa("dead-letters list --consumer \(consumer)")
        letter = list.output.split(separator: " ").first.map(String.init) ?? ""
        return list.output != "None waits.\n"
      }
      let discarded = try await siwa("dead-letters discard --consumer \(consumer) --letter \(letter) --reason tried")
      #expect(discarded.end == .exit(0) && !discarded.errors.contains("siwa: "), "\(discarded)")
    }
  }

  func anOperatorDealsWithQuarantine() async throws {
    let url = try #require(ingress).url
    for _ in 0..<2 {
      try await simulator.order(
        "notify",
        [
          "type": "consent-revoked", "user": "cyn", "audience": AppleSide.app, "to": url.text,
          "faults": [Fault.expired.rawValue],
        ])
    }
    // Where the broker is slow, they have come by way of the spool.
    try await until(every: .milliseconds(100)) { try await siwa("quarantine list").output.contains("0/1 ") }
    for line in [
      "list", "show --letter 0/0", "release --letter 0/0 --reason tried", "discard --letter 0/1 --reason tried",
    ] {
      let done = try await siwa("quarantine \(line)")
      #expect(done.end == .exit(0) && !done.errors.contains("siwa: "), "\(line): \(done)")
    }
    #expect(try await siwa("quarantine list").output == "None waits.\n")
  }

  func anOperatorReplaysAndMovesAGroup() async throws {
    for line in ["events", "outcomes", "email-relay", "events --to-consumer email-relay"] {
      let done = try await siwa("replay \(line)")
      #expect(done.end == .exit(0) && !done.errors.contains("siwa: "), "\(line): \(done)")
    }
    let mail = members.removeLast()
    #expect(try await mail.end() == .exit(0))
    let moved = try await siwa("topics reset-group --group siwa-email-relay --to beginning --yes")
    #expect(moved.end == .exit(0) && moved.errors.hasPrefix("reset: "), "\(moved)")
    members.append(try await stage.start(.emailRelay, secure.environment(as: "siwa-email-relay")))
  }

  /// Each program with one right less.
  func whatIsMissingIsSaid() async throws {
    let topic = Topic.accountEvents.name
    try await without("siwa dead-letters", "Read", Topic.deadLetters(of: .emailRelay).name) { rule in
      let list = try await siwa("dead-letters list --consumer email-relay")
      #expect(list.end == .exit(3) && list.errors.contains("authorization failed"), "\(list)")
    }
    try await without("siwa topics", "Create", "apple.") { rule in
      let environment = secure.environment(as: "siwa-topics").merging(["SIWA_CONFIG": "/dev/null"]) { $1 }
      let words = ["topics", "create", "--replication", "1", "--consumer", "newsletter"]
      let (end, errors) = try await RunningProgram.run("siwa", words, environment) { program in
        (try await program.untilEnd(), program.errors)
      }
      #expect(end == .exit(3) && errors.contains("uthorization failed"), "\(errors)")
    }
    let denied = try #require(ingress)
    try await without("siwa-ingress", "Write", topic) { rule in
      try await until { try await denied.get("/readyz").text.contains("\(topic): Broker: Topic authorization failed") }
      #expect(try await denied.get("/readyz").text.contains("the spool takes over"))
      _ = try await simulator.notify(.emailEnabled, "dan", to: try denied.url)
      #expect(try await denied.end() == .exit(0))
      // Whoever releases by hand may.
      let released = try await siwa("spool release --all")
      #expect(released.end == .exit(0) && released.output.hasPrefix("released  "), "\(released)")
    }
    let ingress = try await stage.startIngress(secure.environment(as: "siwa-ingress"))
    try await until { try await ingress.get("/readyz").text.contains("kafka: ready") }
    let revoker = try #require(members.first)
    // It may still ask what the topic holds, so that nothing but fetching is refused, which librdkafka says once.
    try access.grant([AccessRule(program: "siwa-token-revoker", resource: .topic, name: topic, operation: "Describe")])
    try await without("siwa-token-revoker", "Read", topic) { rule in
      _ = try await revoker.program.line(with: "reading failed", "Topic authorization failed")
      _ = try await simulator.notify(.emailEnabled, "eve", to: try ingress.url)
      try await until(every: .milliseconds(100)) {
        try await revoker.get("/readyz").text.contains("brings nothing, though it ends at ")
      }
      #expect(try await revoker.metric("siwa_consumer_lag{consumer=\"token-revoker\"}") > 0)
    }
    try await until(every: .milliseconds(100)) { try await revoker.get("/readyz").status == 200 }
    try await without("siwa-data-eraser", "Read", Topic.signingKeys.name) { rule in
      let member = try await stage.start(.dataEraser, secure.environment(as: "siwa-data-eraser"))
      _ = try await member.program.line(with: "Apple's signing keys cannot be read")
      #expect(try await member.end() == .exit(0))
    }
    let mail = members.removeLast()
    #expect(try await mail.end() == .exit(0))
    try await without("siwa-email-relay", "Read", "siwa-email-relay") { rule in
      let member = try await stage.start(.emailRelay, secure.environment(as: "siwa-email-relay"))
      _ = try await member.program.line(with: "notAuthorized", "Group authorization failed")
      #expect(try await member.end() == .exit(0))
    }
    let log = try #require(auditLog)
    #expect(try await log.end() == .exit(0), "\(log.program.errors)")
    try await without("siwa-audit-log", "Read", Topic.outcomes.name) { rule in
      let log = try await stage.startAuditLog(secure.environment(as: "siwa-audit-log"))
      _ = try await log.program.line(with: "reading from Kafka failed", "Topic authorization failed")
      #expect(try await log.end() == .exit(0), "\(log.program.errors)")
    }
    for member in members { #expect(try await member.end() == .exit(0), "\(member.program.errors)") }
    #expect(try await ingress.end() == .exit(0))
  }

  private func without(
    _ program: String, _ operation: String, _ name: String, _ body: @Loop (AccessRule) async throws -> Void
  ) async throws {
    let rule = try #require(
      rules.first { $0.program == program && $0.operation == operation && $0.name == name })
    // The controller's answer comes before the broker goes by it.
    try access.takeAway(rule)
    try await until { try !access.isGranted(rule) }
    try await body(rule)
    try access.grant([rule])
    try await until { try access.isGranted(rule) }
  }

  /// Runs `siwa` as the user of that command.
  private func siwa(_ line: String) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let words = line.split(separator: " ").map(String.init)
    let environment = stage.environment.merging(secure.environment(as: "siwa-\(words[0])")) { $1 }
    return try await RunningProgram.run("siwa", words, environment) { program in
      try await program.outcome()
    }
  }
}
