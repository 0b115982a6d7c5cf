import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import EventLoop
import HTTPClient
import Kafka
import TestSupport
import Testing

/// The consumers as programs, from Apple's notification to every effect.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct ConsumerProgramsTests {
  @Test func whatFollowsFromEachKindOfEventIsDoneOnceAndAReplayDoesNothing() async throws {
    try await run(ConsumerStage.Form())
  }

  @Test(PostgreSQLServer.isThere)
  func theSameWithTheStoreInPostgreSQL() async throws {
    try await run(ConsumerStage.Form(postgreSQL: try await PostgreSQLServer.shared().makeDatabase()))
  }

  private func run(_ form: ConsumerStage.Form) async throws {
    try await ConsumerStage.run(form) { stage, simulator in
      let rehearsal = try Rehearsal(stage, simulator)
      try await rehearsal.everyKindOfEventHappens()
      try await rehearsal.everythingIsReadAgain()
    }
  }
}

/// Five people, of whom Apple, or the app, tells one thing each.
@Loop
private final class Rehearsal {
  private let stage: ConsumerStage
  private let simulator: SimulatorProgram
  private let progress: GroupProgress
  private let consumers = TopicPlan.consumers
  private var brokers: String { stage.broker.bootstrapServers }

  init(_ stage: ConsumerStage, _ simulator: SimulatorProgram) throws {
    (self.stage, self.simulator) = (stage, simulator)
    progress = try GroupProgress(stage.broker.bootstrapServers)
  }

  /// Nobody is killed here: each thing that is to be said is said once.
  private var expected: [String] = []
  private func expect(_ event: String, _ outcomes: String...) { expected += outcomes.map { "\(event).\($0)" } }
  private static let over = ["tokens-revoked", "sessions-ended", "account-erased", "relay-changed"]

  func everyKindOfEventHappens() async throws {
    let people = ["ada", "bob", "cyn", "dan", "eve"].map { Person(named: $0) }
    let tokens = try await signIn(["ada", "bob", "cyn", "dan", "eve"])
    try stage.shop.welcome(people)
    #expect(try await simulator.asked() == ["keys": 0, "tokens": 5, "revocations": 0, "migrations": 0])

    let ingress = try await stage.startIngress()
    let url = try ingress.url
    try await simulator.order(
      "team", ["team": AppleSide.team, "audiences": [AppleSide.app], "to": url.text])
    var members: [RunningMember] = []
    for consumer in consumers { members.append(try await stage.start(consumer)) }

    for name in ["cyn", "dan", "eve"] {
      expect(try await simulator.notify(.emailEnabled, name, to: url), "relay-changed")
    }
    expect(try await simulator.notify(.emailDisabled, "ada", to: url), "relay-changed")
    expect(try await simulator.notify(.emailEnabled, "bob", to: url), "relay-changed")
    // Who is erased before the e-mail relay has come to their address never had one.
    let mail = try #require(members.last)
    for person in people {
      try await until { try await mail.mayBeSent(to: person.subject, token: stage.token).status == 200 }
    }
    for (type, name) in [(NotificationType.consentRevoked, "cyn"), (.accountDelete, "dan")] {
      let event = try await simulator.notify(type, name, to: url)
      expected += Self.over.map { "\(event).\($0)" }
    }
    try await askForDeletion(of: Person(named: "eve"))
    expected += Self.over.map { "asked-by-eve.\($0)" }
    // Apple tells of our own revocation, too.
    try await until { try await TopicContents.read([.accountEvents], brokers)[Topic.accountEvents.name]?.count == 9 }
    let events = try await TopicContents.read([.accountEvents], brokers)[Topic.accountEvents.name] ?? []
    let echo = try #require(
      events.compactMap { $0.text(of: "ce_id") }.first { id in
        id != "asked-by-eve" && !expected.contains { $0.hasPrefix(id) }
      })
    // The token revoker has done it already; the others find nothing any more.
    expect(echo, "no-effect.token-revoker", "account-erased", "relay-changed")

    try await untilAllIsCommitted()
    try await expectWhatWasSaid()
    try await expectWhatIsKept(members, tokens)
    #expect(try await simulator.asked()["revocations"] == 1)
    #expect(try await ingress.end() == .exit(0))
    for member in members { #expect(try await member.end() == .exit(0), "\(member.program.errors)") }
    for consumer in consumers { #expect(try await progress.open(of: consumer) == 0) }
  }

  /// The groups have read nothing, as far as the broker knows: the whole topic comes again.
  func everythingIsReadAgain() async throws {
    let topics: [Topic] = [.accountEvents, .outcomes, .emailRelay] + consumers.map { .deadLetters(of: $0) }
    let (before, asked) = (try await progress.ends(of: topics), try await simulator.asked())
    for consumer in consumers {
      try await progress.empty(consumer)
      #expect(try await progress.open(of: consumer) == 9)
    }
    var members: [RunningMember] = []
    for consumer in consumers { members.append(try await stage.start(consumer)) }
    try await untilAllIsCommitted()
    for (member, count) in zip(members, [4.0, 4, 9]) {
      let repeated = #"siwa_consumer_events_total{consumer="\#(member.consumer)",outcome="repeated"}"#
      #expect(try await member.metric(repeated) == count)
      #expect(try await member.end() == .exit(0), "\(member.program.errors)")
    }
    #expect(try await progress.ends(of: topics) == before)
    #expect(try await simulator.asked() == asked)
    #expect(before.filter { $0.key.topic.contains("dead-letters") }.allSatisfy { $0.value == 0 })
    await progress.close()
  }

  /// They sign in a minute ago: what the simulator tells has happened after that.
  private func signIn(_ names: [String]) async throws -> [String: RefreshToken] {
    var tokens: [String: RefreshToken] = [:]
    for name in names {
      tokens[name] = try await stage.signIn(
        Person(named: name), code: try await simulator.signIn(name), at: .now - .seconds(60))
    }
    return tokens
  }

  /// What an accounts service says when somebody asks the app for the deletion of the account.
  private func askForDeletion(of person: Person) async throws {
    let account = try ConsumerStage.account(person)
    let event = AccountEvent(
      id: try #require(EventID("asked-by-eve")), team: account.team, audience: try #require(ClientID(AppleSide.app)),
      subject: account.subject, kind: .accountDeletionRequested, occurredAt: .now, issuedAt: .now)
    try await stage.send([try stage.record(of: event)])
  }

  private func untilAllIsCommitted() async throws {
    for consumer in consumers {
      try await until(every: .milliseconds(100)) { try await progress.isDone(consumer) }
    }
  }

  private func expectWhatWasSaid() async throws {
    let records = try await TopicContents.read([.outcomes], brokers)[Topic.outcomes.name] ?? []
    #expect(records.compactMap { $0.text(of: "ce_id") }.sorted() == expected.sorted())
    for record in records {
      let words = record.headers.map { String(decoding: $0.value ?? [], as: UTF8.self) }
      let text = (words + [String(decoding: (record.key ?? []) + (record.value ?? []), as: UTF8.self)]).joined()
      for name in ["ada", "bob", "cyn", "dan", "eve"] { #expect(!text.contains(Person(named: name).subject)) }
    }
  }

  private func expectWhatIsKept(_ members: [RunningMember], _ tokens: [String: RefreshToken]) async throws {
    #expect(try stage.shop.customers() == Set(["ada", "bob"].map { Person(named: $0).subject }))
    #expect(try stage.shop.purchases() == 4)
    let mail = try #require(members.last)
    for (name, status, word) in [
      ("ada", 200, #""may_send":false,"status":"disabled""#), ("bob", 200, #""may_send":true,"status":"enabled""#),
      ("cyn", 404, #""may_send":false,"status":"unknown""#), ("dan", 410, #""may_send":false,"status":"erased""#),
      ("eve", 410, #""may_send":false,"status":"erased""#),
    ] {
      let answer = try await mail.mayBeSent(to: Person(named: name).subject, token: stage.token)
      #expect(answer.status == status && answer.text.contains(word), "\(name): \(answer)")
    }
    for (name, token) in tokens {
      let isKept = try await !stage.store.tokens(of: try ConsumerStage.account(Person(named: name))).isEmpty
      #expect(isKept == ["ada", "bob"].contains(name), "\(name)")
      #expect(try await stage.isGood(token) == isKept, "\(name)")
    }
    var last: [String: [UInt8]?] = [:]
    for record in try await TopicContents.read([.emailRelay], brokers)[Topic.emailRelay.name] ?? [] {
      last[String(decoding: record.key ?? [], as: UTF8.self)] = record.value
    }
    let kept = last.filter { $0.value != nil }.keys.map { String($0.dropFirst(AppleSide.team.count + 1)) }
    #expect(last.count == 5 && Set(kept) == Set(["ada", "bob"].map { Person(named: $0).subject }))
  }
}

extension KafkaRecord {
  /// The record of an event that no notification of Apple's proves.
  init(of event: AccountEvent) {
    let record = EventRecord(event, jws: nil)
    self.init(
      topic: record.topic.name, key: record.key, value: record.value,
      headers: record.headers.map { KafkaHeader($0.name, $0.value) })
  }
}
