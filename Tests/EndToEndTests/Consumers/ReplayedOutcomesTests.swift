import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import Glibc
import Kafka
import TestSupport
import Testing

/// What the consumers have said, outcomes and states of mail, is replayed to everywhere while they run, and somebody of the
/// operator's own reads it in a group: neither notices.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct ReplayedOutcomesTests {
  private nonisolated static let (ada, bob) = (Person(named: "ada"), Person(named: "bob"))
  private let files = TemporaryDirectory()

  @Test(arguments: [ReplayedTopic.outcomes, .emailRelay])
  func whatWasSaidIsReplayedEverywhereAndNoGroupNotices(_ topic: ReplayedTopic) async throws {
    // Nobody asks Apple here.
    let apple = AppleSide(
      origin: "https://127.0.0.1:9", certificate: "/nowhere", privateKey: "/nowhere",
      key: DeveloperKey(id: "ABC123DEFG", privateKeyPEM: try P256PrivateKey().pem()))
    try await ConsumerStage.run(try await RealBroker(), apple, in: files) { stage in
      let members = [try await stage.start(.emailRelay), try await stage.start(.dataEraser)]
      let progress = try GroupProgress(stage.broker.bootstrapServers)
      try stage.shop.welcome([Self.ada, Self.bob])
      try await stage.send([
        stage.record(of: .sample("ada-mail", .emailEnabled(.sample(Self.ada), isPrivate: true), of: Self.ada, at: 1)),
        stage.record(of: .sample("bob-mail", .emailEnabled(.sample(Self.bob), isPrivate: true), of: Self.bob, at: 1)),
        stage.record(of: .sample("bob-none", .emailDisabled(.sample(Self.bob), isPrivate: true), of: Self.bob, at: 2)),
        stage.record(of: .sample("ada-gone", .accountDelete, of: Self.ada, at: 3)),
      ])
      for member in members {
        try await until(every: .milliseconds(100)) { try await progress.isDone(member.consumer) }
      }
      let records = try await TopicContents.read([topic.topic], stage.broker.bootstrapServers)[topic.topic.name] ?? []
      let reader = try GroupReader(of: topic.topic, stage.broker.bootstrapServers)
      try await until { reader.places == Set(records.map(\.position)) }

      let notes = try await everythingOf(members, progress)
      let replay = Replayed(stage, topic, records)
      try await replay.isShownWithoutNames([Self.ada.subject, Self.bob.subject, Self.ada.address, Self.bob.address])
      try await replay.isNarrowedDown(to: Self.bob, by: "bob-none")
      try await replay.isRehearsed()
      try await replay.isWrittenAndReadAgain()
      try await replay.isPutOntoAnotherTopic()
      #expect(try await everythingOf(members, progress) == notes)
      try await reader.leave()
      #expect(reader.told == 1 && reader.count == records.count, "it was given its partitions once, and each record")

      for member in members {
        #expect(!member.program.errors.contains(#""level":"error""#), "\(member.program.errors)")
        #expect(try await member.end() == .exit(0), "\(member.program.errors)")
      }
      await progress.close()
    }
  }

  /// What would be another thing if a group had noticed: where each of the programs' topics ends, what is open, and what
  /// they count.
  private func everythingOf(_ members: [RunningMember], _ progress: GroupProgress) async throws -> [String] {
    let topics = [.accountEvents, .outcomes, .emailRelay] + TopicPlan.consumers.map { Topic.deadLetters(of: $0) }
    var notes = try await progress.ends(of: topics).map { "\($0.key): \($0.value)" }.sorted()
    for member in members {
      notes.append("open: \(try await progress.open(of: member.consumer))")
      let names = ["siwa_consumer_events_total", "siwa_consumer_records_missing", "siwa_consumer_partitions"]
      notes += try await member.get("/metrics").text.split(separator: "\n")
        .filter { line in names.contains { line.hasPrefix($0) } }.map(String.init)
    }
    return notes
  }
}

/// One of the topics, and what stands on it.
@Loop
private struct Replayed {
  private let stage: ConsumerStage
  private let topic: ReplayedTopic
  private let records: [ConsumedRecord]

  init(_ stage: ConsumerStage, _ topic: ReplayedTopic, _ records: [ConsumedRecord]) {
    (self.stage, self.topic, self.records) = (stage, topic, records)
  }

  private var file: String { stage.files.path + "/\(topic.rawValue).jsonl" }
  private var count: Int { records.count }

  private func replay(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await stage.siwa(["replay"] + words)
  }

  private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init).sorted() }

  func isShownWithoutNames(_ names: [String]) async throws {
    let shown = try await replay(topic.rawValue)
    #expect(shown.end == .exit(0) && shown.errors == "shown: \(count) of \(count) that were read\n", "\(shown)")
    #expect(lines(shown.output).count == count)
    let types = Set(lines(shown.output).map { $0.split(separator: " ", omittingEmptySubsequences: true)[2] })
    #expect(types.contains(topic == .outcomes ? "account-erased" : "tombstone") && !types.contains("-"), "\(shown)")
    for name in names { #expect(!shown.output.contains(name), "\(name)") }
    // Outcomes name nobody, whoever asks.
    let personal = try await replay(topic.rawValue, "--personal")
    #expect(personal.output.contains(names[0]) == (topic == .emailRelay), "\(personal)")
  }

  func isNarrowedDown(to person: Person, by event: String) async throws {
    for (words, most) in [
      (["--account", "\(AppleSide.team)/\(person.subject)"], count - 1), (["--event", event], count - 2),
      (["--limit", "1"], 1),
    ] {
      let some = try await stage.siwa(["replay", topic.rawValue] + words)
      #expect(some.end == .exit(0) && 1...most ~= lines(some.output).count, "\(words): \(some)")
    }
    let none = try await replay(topic.rawValue, "--event", "of-nobody")
    #expect(none.end == .exit(1) && none.output == "" && none.errors.hasSuffix("siwa: no record is as described\n"))
  }

  func isRehearsed() async throws {
    try await makeTopic("shop.rehearsed")
    let shown = try await replay(topic.rawValue)
    for place in [["--out", file], ["--to-topic", "shop.rehearsed"]] {
      let rehearsed = try await stage.siwa(["replay", topic.rawValue, "--dry-run"] + place)
      #expect(
        rehearsed.end == .exit(0) && rehearsed.errors == "would be replayed: \(count) of \(count) that were read\n")
      #expect(lines(rehearsed.output) == lines(shown.output))
    }
    #expect(unsafe access(file, F_OK) != 0)
    #expect(try await TopicContents.read([Topic(name: "shop.rehearsed")], stage.broker.bootstrapServers).isEmpty)
  }

  func isWrittenAndReadAgain() async throws {
    let written = try await replay(topic.rawValue, "--out", file)
    #expect(written.end == .exit(0) && written.errors == "written: \(count) of \(count) that were read\n", "\(written)")
    var status = stat()
    #expect(unsafe stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    let fromTopic = try await replay(topic.rawValue, "--json", "--personal")
    let fromFile = try await replay(
      "--in", file, "--json", "--personal", "--set", "kafka.bootstrap.servers=127.0.0.1:9")
    #expect(fromFile.end == .exit(0) && lines(fromFile.output) == lines(fromTopic.output), "\(fromFile)")
  }

  /// From the topic, and from the file.
  func isPutOntoAnotherTopic() async throws {
    for (name, words) in [("shop.of-topic", [topic.rawValue]), ("shop.of-file", ["--in", file])] {
      try await makeTopic(name)
      let replayed = try await stage.siwa(["replay"] + words + ["--to-topic", name])
      #expect(replayed.end == .exit(0) && replayed.errors.hasPrefix("replayed: \(count) of \(count) "), "\(replayed)")
      let copies = try await TopicContents.read([Topic(name: name)], stage.broker.bootstrapServers)[name] ?? []
      #expect(copies.count == count)
      for (key, originals) in Dictionary(grouping: records, by: \.key) {
        let same = copies.filter { $0.key == key }
        #expect(
          same.map(\.value) == originals.map(\.value) && same.map(\.headers) == originals.map(\.headers), "\(name)")
      }
    }
    // What the programs believe is not written by hand.
    for own in [Topic.outcomes, .emailRelay] {
      let refused = try await replay("--in", file, "--to-topic", own.name)
      #expect(refused.end == .exit(2) && refused.errors.hasPrefix("siwa: --to-topic: "), "\(refused)")
    }
    let given = try await replay("--in", file, "--to-consumer", "data-eraser")
    #expect(given.end == .exit(2) && given.errors.hasPrefix("siwa: --to-consumer: consumers read account events"))
  }

  private func makeTopic(_ name: String) async throws {
    let admin = try Admin(
      try KafkaConfiguration(properties: [("bootstrap.servers", stage.broker.bootstrapServers)]), log: { _ in })
    _ = try await admin.createTopics([NewTopic(name, partitions: 2, replicationFactor: 1)], within: .seconds(300))
    _ = try await admin.awaitTopic(name, within: .seconds(300))
    await admin.close()
  }
}

/// A service of the operator's own: the one member of a group that reads a topic of the programs'.
@Loop
private final class GroupReader {
  /// Where the records stood that it was given.
  private(set) var places: Set<KafkaPosition> = []
  /// How many it was given.
  private(set) var count = 0
  /// How often it was told of its partitions.
  private(set) var told = 0
  private let consumer: Consumer
  private var reading: Task<Void, any Error>?

  init(of topic: Topic, _ brokers: String) throws {
    consumer = try Consumer(
      try KafkaConfiguration(properties: [
        ("bootstrap.servers", brokers), ("session.timeout.ms", "45000"), ("heartbeat.interval.ms", "100"),
      ]), group: GroupMembership(ConsumerGroup("shop"), instance: nil, handover: .seconds(120)), log: { _ in })
    try consumer.subscribe(to: [topic.name])
    reading = Task { @Loop [weak self] in
      while !Task.isCancelled, let event = try await self?.consumer.nextEvent(upTo: 100) { self?.note(event) }
    }
  }

  private func note(_ event: GroupEvent) {
    guard case .records(let records) = event else {
      told += 1
      return
    }
    count += records.count
    places.formUnion(records.map(\.position))
  }

  /// Leaves, and throws what has gone wrong.
  func leave() async throws {
    reading?.cancel()
    do { try await reading?.value } catch is CancellationError { reading = nil }
    await consumer.close()
  }
}
