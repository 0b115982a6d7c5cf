import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import EventLoop
import HTTPClient
import Kafka
import TestSupport
import Testing
import TransparencyLog

/// Everything that has happened is given to every consumer again, and to the audit log, by each of the ways that there are
/// for it.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct ReplayedConsumersTests {
  @Test func aReplayOfTheWholeTopicHasNoEffectAndAGroupThatIsMovedComplainsOfNothing() async throws {
    try await ConsumerStage.run { stage, simulator in
      let rehearsal = try Rehearsal(stage, simulator)
      try await rehearsal.somethingOfEachKindHappens()
      try await rehearsal.everythingIsGivenToEachConsumerAgain()
      try await rehearsal.everythingIsReadAgain()
      try await rehearsal.aGroupIsMovedBackAndForth()
      try await rehearsal.everythingIsPutOntoItsTopicAgain()
      try await rehearsal.anotherAccountStoreIsRefusedUntilTheGroupBeginsAnew()
      await rehearsal.progress.close()
    }
  }
}

@Loop
private final class Rehearsal {
  let progress: GroupProgress
  private let stage: ConsumerStage
  private let simulator: SimulatorProgram
  private let consumers = TopicPlan.consumers
  private var members: [RunningMember] = []
  private var auditLog: RunningAuditLog?
  /// What is in the audit log.
  private var logged: AuditLogContents?
  /// How many account events there are, and how many of them concern each consumer.
  private var total: Int64 = 0
  private var concern: [ConsumerName: Double] = [:]
  private var before: [TopicPartition: Int64] = [:]
  private var asked: [String: Int] = [:]
  private var brokers: String { stage.broker.bootstrapServers }

  init(_ stage: ConsumerStage, _ simulator: SimulatorProgram) throws {
    (self.stage, self.simulator) = (stage, simulator)
    progress = try GroupProgress(stage.broker.bootstrapServers)
  }

  func somethingOfEachKindHappens() async throws {
    let names = ["ada", "bob", "cyn", "dan"]
    for name in names {
      try await stage.signIn(Person(named: name), code: try await simulator.signIn(name), at: .now - .seconds(60))
    }
    try stage.shop.welcome(names.map { Person(named: $0) })
    let ingress = try await stage.startIngress()
    let url = try ingress.url
    try await simulator.order("team", ["team": AppleSide.team, "audiences": [AppleSide.app], "to": url.text])
    for consumer in consumers { members.append(try await stage.start(consumer)) }
    auditLog = try await stage.startAuditLog()
    for (type, name) in [
      (NotificationType.emailEnabled, "ada"), (.emailDisabled, "ada"), (.emailEnabled, "bob"), (.consentRevoked, "bob"),
      (.accountDelete, "cyn"),
    ] { _ = try await simulator.notify(type, name, to: url) }
    // Asked for by an operator, so that Apple is asked to revoke, and tells of that.
    let asked = try await stage.siwa(
      "erase", "--team", AppleSide.team, "--sub", Person(named: "dan").subject, "--reason", "a letter", "--yes")
    #expect(asked.end == .exit(0), "\(asked)")
    try await until { try await TopicContents.read([.accountEvents], brokers).values.first?.count == 7 }
    try await untilAllIsCommitted()
    #expect(try await ingress.end() == .exit(0))
    (total, concern) = (7, [.tokenRevoker: 4, .dataEraser: 4, .emailRelay: 7])
    before = try await progress.ends(of: said)
    self.asked = try await simulator.asked()
    logged = try await untilAllIsLogged(7)
  }

  /// Waits until the audit log has so many events and all outcomes, each once, and returns what is in it.
  private func untilAllIsLogged(_ events: Int) async throws -> AuditLogContents {
    let records = try await TopicContents.read([.outcomes], brokers)[Topic.outcomes.name] ?? []
    let outcomes = Set(try records.map { try AccountOutcome(decoding: $0.value ?? []) })
    // One of the deletions was asked for by a person, whose decision is an entry of its own.
    try await auditLog?.untilPublished(events + outcomes.count + 1)
    let contents = try await AuditLogContents(of: stage.auditLog, stage.auditKey.key)
    #expect(contents.obligations.count == events && contents.obligations.values.allSatisfy { $0 == 1 })
    #expect(Set(contents.effects.keys) == outcomes && contents.effects.values.allSatisfy { $0 == 1 })
    #expect(contents.others.count == 1)
    return contents
  }

  /// What consumers write.
  private var said: [Topic] { [.accountEvents, .outcomes, .emailRelay] + consumers.map { .deadLetters(of: $0) } }

  func everythingIsGivenToEachConsumerAgain() async throws {
    for member in members {
      let words = ["replay", "events", "--to-consumer", "\(member.consumer)"]
      let rehearsed = try await stage.siwa(words + ["--dry-run"])
      #expect(
        rehearsed.end == .exit(0) && rehearsed.errors == "would be replayed: \(total) of \(total) that were read\n")
      #expect(rehearsed.output.split(separator: "\n").count == Int(total), "\(rehearsed)")
      #expect(try await progress.ends(of: [.retries(of: member.consumer)]).values.reduce(0, +) == 0)
      let replayed = try await stage.siwa(words)
      #expect(
        replayed.end == .exit(0) && replayed.output == ""
          && replayed.errors == "replayed: \(total) of \(total) that were read\n", "\(replayed)")
      #expect(try await progress.ends(of: [.retries(of: member.consumer)]).values.reduce(0, +) == total)
    }
    try await untilAllIsCommitted()
    try await expectNothingNew(repeatedTimes: 1)
  }

  func everythingIsReadAgain() async throws {
    for member in members {
      let refused = try await reset(member.consumer, "--to", "beginning", "--yes")
      #expect(refused.end == .exit(1) && refused.errors == "siwa: the group has members (1): stop them first\n")
      #expect(try await member.end() == .exit(0), "\(member.program.errors)")
      let unasked = try await reset(member.consumer, "--to", "beginning")
      #expect(unasked.end == .exit(2) && unasked.errors.hasSuffix("siwa: nobody can be asked here: say --yes\n"))
      let rehearsed = try await reset(member.consumer, "--to", "beginning", "--dry-run")
      #expect(rehearsed.end == .exit(0) && rehearsed.errors == "", "\(rehearsed)")
      #expect(try await progress.open(of: member.consumer) == 0)
      let done = try await reset(member.consumer, "--to", "beginning", "--yes")
      #expect(done.end == .exit(0) && done.output == rehearsed.output, "\(done)")
      let places = done.output.split(separator: "\n")
      #expect(
        !places.isEmpty && places.allSatisfy { $0.hasPrefix("apple.account-events.v1/") && $0.contains(" -> 0  -") })
      #expect(try await progress.open(of: member.consumer) == total)
    }
    members = []
    for consumer in consumers { members.append(try await stage.start(consumer)) }
    try await untilAllIsCommitted()
    try await expectNothingNew(repeatedTimes: 1)
    for member in members { #expect(try await member.end() == .exit(0), "\(member.program.errors)") }
    members = []
  }

  func aGroupIsMovedBackAndForth() async throws {
    let committed = try await progress.ends(of: [.accountEvents])
    let (place, end) = try #require(committed.first { $0.value >= 2 })
    let back = try await reset(.emailRelay, "--to", "\(place.partition)/\(end - 2)", "--yes")
    #expect(back.output == "apple.account-events.v1/\(place.partition)  \(end) -> \(end - 2)  -2\n", "\(back)")
    let nowhere = try await reset(.emailRelay, "--to", "\(place.partition)/\(end + 1)", "--yes")
    #expect(nowhere.end == .exit(1) && nowhere.errors.contains("not there; the partition holds 0 to \(end)"))
    let unknown = try await reset(.emailRelay, "--to", "99/0", "--yes")
    #expect(unknown.end == .exit(1) && unknown.errors == "siwa: there is no partition 99\n")
    var relay = try await stage.start(.emailRelay)
    try await until(every: .milliseconds(100)) { try await progress.isDone(.emailRelay) }
    members = [relay]
    concern = [.emailRelay: 2]
    try await expectNothingNew(repeatedTimes: 1)
    #expect(try await relay.end() == .exit(0))

    // What a group is moved past it does not process, until somebody gives it to it.
    let fay = Person(named: "fay")
    let producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), deadline: .seconds(300), log: { _ in })
    _ = try await producer.send(
      KafkaRecord(of: .sample("of-fay", .emailEnabled(.sample(fay), isPrivate: true), of: fay)))
    await producer.close(within: .seconds(10))
    let mistyped = try await reset("email-rely", "--to", "beginning", "--yes")
    #expect(mistyped.errors.contains("siwa-email-rely has committed nothing on \(Topic.accountEvents)"), "\(mistyped)")
    let forth = try await reset(.emailRelay, "--to", "end", "--yes")
    #expect(forth.end == .exit(0) && forth.output.hasSuffix("  +1\n"), "\(forth)")
    #expect(forth.errors.hasPrefix("The group would never process 1 of what it passes over.\n"))
    let again = try await reset(.emailRelay, "--to", "end", "--yes")
    #expect(again.end == .exit(0) && again.output.hasPrefix("Nothing is to be changed"), "\(again)")
    relay = try await stage.start(.emailRelay)
    #expect(try await progress.isDone(.emailRelay))
    #expect(try await relay.mayBeSent(to: fay.subject, token: stage.token).status == 404)
    let given = try await stage.siwa("replay", "events", "--event", "of-fay", "--to-consumer", "email-relay")
    #expect(given.end == .exit(0) && given.errors.hasPrefix("replayed: 1 of "), "\(given)")
    try await until { try await relay.mayBeSent(to: fay.subject, token: stage.token).status == 200 }
    try await expectNoComplaint(relay)
    #expect(try await relay.end() == .exit(0))
  }

  /// As where a backup of the topics is put back: every record is there once more.
  func everythingIsPutOntoItsTopicAgain() async throws {
    logged = try await untilAllIsLogged(8)
    let contents = try await TopicContents.read([.accountEvents, .outcomes], brokers)
    let producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), deadline: .seconds(300), log: { _ in })
    var count = 0.0
    for (topic, records) in contents {
      for record in records { _ = try await producer.send(KafkaRecord(record, on: topic)) }
      count += Double(records.count)
    }
    await producer.close(within: .seconds(10))
    (before, asked) = (try await progress.ends(of: said), try await simulator.asked())
    for consumer in consumers { members.append(try await stage.start(consumer)) }
    try await untilAllIsCommitted()
    #expect(try await progress.ends(of: said) == before)
    #expect(try await simulator.asked() == asked)
    let log = try #require(auditLog)
    // With the decision, which is an entry of its own.
    try await until { try await log.administration.metric("siwa_audit_log_repeated_total") >= count + 1 }
    #expect(try await log.checkpoint()?.checkpoint.size == (logged?.size).map { UInt64($0) })
    for member in members { #expect(try await member.end() == .exit(0), "\(member.program.errors)") }
    #expect(try await log.end() == .exit(0), "\(log.program.errors)")
    #expect(try await AuditLogContents(of: stage.auditLog, stage.auditKey.key) == logged)
  }

  /// As where the store's volume is not mounted, and somebody begins a store.
  func anotherAccountStoreIsRefusedUntilTheGroupBeginsAnew() async throws {
    let other = ["SIWA_STORE_SQLITE": stage.files.path + "/other.sqlite"]
    #expect(try await stage.launch("siwa", other, through: [], ["store", "begin"]).untilEnd() == .exit(0))
    let places = try await progress.commitments(of: .emailRelay)
    var relay = try await stage.start(.emailRelay, other)
    try await until {
      try await relay.get("/readyz").text.contains("store: not ready: the group has worked on ")
    }
    #expect(try await relay.end() == .exit(0))
    #expect(
      relay.program.errors.contains(#""level":"error","message":"the group has worked on a partition with another"#))
    #expect(try await progress.commitments(of: .emailRelay) == places)

    for topic in [Topic.accountEvents, .retries(of: .emailRelay)] {
      #expect(try await reset(.emailRelay, "--topic", topic.name, "--to", "beginning", "--yes").end == .exit(0))
    }
    relay = try await stage.start(.emailRelay, other)
    try await until(every: .milliseconds(100)) { try await progress.isDone(.emailRelay) }
    try await until { try await relay.get("/readyz").text.contains("store: ready") }
    #expect(try await relay.end() == .exit(0))

    // And back: where the group is, without its notes.
    let moved = try await progress.commitments(of: .emailRelay).mapValues(\.offset)
    for topic in [Topic.accountEvents, .retries(of: .emailRelay)] {
      let done = try await reset(.emailRelay, "--topic", topic.name, "--to", "committed", "--yes")
      #expect(done.end == .exit(0) && done.output == "", "\(done)")
      #expect(
        done.errors.hasPrefix("Partitions in which the group stays, without the note beside its offset: "), "\(done)")
    }
    #expect(try await progress.commitments(of: .emailRelay) == moved.mapValues { CommittedOffset($0) })
    relay = try await stage.start(.emailRelay)
    try await until { try await relay.get("/readyz").text.contains("store: ready") }
    #expect(try await relay.end() == .exit(0))
  }

  // MARK: What is the same as before

  private func expectNothingNew(repeatedTimes times: Double) async throws {
    #expect(try await progress.ends(of: said) == before)
    #expect(try await simulator.asked() == asked)
    let contents = try await AuditLogContents(of: stage.auditLog, stage.auditKey.key)
    #expect(contents == logged, "the audit log has no new entry")
    #expect(before.filter { $0.key.topic.contains("dead-letters") }.allSatisfy { $0.value == 0 })
    for member in members {
      let repeated = #"siwa_consumer_events_total{consumer="\#(member.consumer)",outcome="repeated"}"#
      #expect(try await member.metric(repeated) == times * (concern[member.consumer] ?? 0), "\(member.consumer)")
      try await expectNoComplaint(member)
    }
  }

  /// Nothing is missing to it, and no topic looks like another one.
  private func expectNoComplaint(_ member: RunningMember) async throws {
    for name in ["records_missing", "partitions_begun_anew", "partitions_begun_late"] {
      #expect(try await member.metric(#"siwa_consumer_\#(name)_total{consumer="\#(member.consumer)"}"#) == 0, "\(name)")
    }
    for words in ["\"level\":\"error\"", "\"level\":\"warning\",\"message\":\"reading"] {
      #expect(!member.program.errors.contains(words), "\(member.program.errors)")
    }
  }

  private func reset(
    _ consumer: ConsumerName, _ words: String...
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await stage.siwa(["topics", "reset-group", "--group", "siwa-\(consumer)"] + words)
  }

  private func untilAllIsCommitted() async throws {
    for consumer in consumers {
      try await until(every: .milliseconds(100)) { try await progress.isDone(consumer) }
    }
  }
}
