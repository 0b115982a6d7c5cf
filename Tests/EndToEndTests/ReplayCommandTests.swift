import AccountEvents
import AccountServices
import AppleSimulator
import EventLoop
import Foundation
import Glibc
import Kafka
import TestSupport
import Testing

/// `siwa replay`, as an operator uses it, on a broker of its own.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct ReplayCommandTests {
  private nonisolated static let jws = "header.payload-of-ada.signature"
  private nonisolated static let (ada, bob) = (Person(named: "ada"), Person(named: "bob"))

  @Test func whatIsShownNamesNobodyUnlessThatIsAskedFor() async throws {
    try await run { stage in
      let events = try [
        stage.event(1, .emailEnabled(.sample(Self.ada), isPrivate: true), of: Self.ada),
        stage.event(2, .consentRevoked, of: Self.bob), stage.event(3, .accountDelete, of: Self.ada),
      ]
      for event in events { try await stage.send(event) }
      // What somebody else has put there commands no terminal, and is not taken for what it is not.
      try await stage.send(
        KafkaRecord(
          topic: Topic.accountEvents.name, partition: 0, key: Array("\u{1b}[2J".utf8), value: Array("\u{1b}[2J".utf8),
          headers: [KafkaHeader("ce_type", "\u{1b}[2J"), KafkaHeader("ce_id", "\u{1b}[2J")]))

      let shown = try await stage.siwa("replay", "events")
      #expect(shown.end == .exit(0) && shown.errors == "shown: 4 of 4 that were read\n", "\(shown)")
      let lines = shown.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      #expect(
        Set(lines.map { $0[2...].joined(separator: " ") }) == [
          "email-enabled event-1 A1B2C3D4E5 com.example.app", "consent-revoked event-2 A1B2C3D4E5 com.example.app",
          "account-delete event-3 A1B2C3D4E5 com.example.app", "- - - -",
        ])
      let json = try await stage.siwa("replay", "events", "--json")
      let objects = try json.output.split(separator: "\n").map { line in
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      }
      #expect(Set(objects.compactMap { $0["event"] as? String }) == ["event-1", "event-2", "event-3"])
      for output in [shown.output, json.output] {
        for secret in [Self.ada.subject, Self.bob.subject, Self.ada.address, Self.jws, "\u{1b}"] {
          #expect(!output.contains(secret), "\(output)")
        }
      }
      let personal = try await stage.siwa("replay", "events", "--event", "event-1", "--personal")
      #expect(personal.end == .exit(0) && personal.errors == "shown: 1 of 4 that were read\n")
      for words in ["key: A1B2C3D4E5/\(Self.ada.subject)\n", "apple-jws: \(Self.jws)\n", Self.ada.address] {
        #expect(personal.output.contains(words), "\(personal.output)")
      }
      #expect(try await !stage.siwa("replay", "events", "--personal").output.contains("\u{1b}"))

      // What is meant, and when.
      for (words, input, found) in [
        (["--account", "-"], "A1B2C3D4E5/\(Self.ada.subject)\n", ["event-1", "event-3"]),
        (["--type", "consent-revoked"], "", ["event-2"]), (["--until", "2020-01-01"], "", []),
        (["--from", "2999-01-01T00:00:00Z"], "", []), (["--from", "2020-01-01", "--limit", "4"], "", nil),
        (["--account", "A1B2C3D4E5/nobody"], "", []),
      ] as [([String], String, [String]?)] {
        let some = try await stage.siwa(["replay", "events"] + words, input: input)
        let ids = some.output.split(separator: "\n").map { String($0.split(separator: " ")[3]) }
        if let found { #expect(Set(ids) == Set(found), "\(words): \(some)") } else { #expect(ids.count == 4) }
        #expect(some.end == .exit(found == [] ? 1 : 0), "\(words): \(some)")
      }
      let place = try #require(lines.first { $0[3] == "event-2" }?[0])
      let one = try await stage.siwa("replay", "events", "--from", place, "--limit", "1")
      #expect(one.output.contains("event-2") && one.output.split(separator: "\n").count == 1)
    }
  }

  @Test(
    arguments: [
      (["replay"], "say WHAT"), (["replay", "events", "--in", "a"], "say WHAT"), (["replay", "words"], "WHAT"),
      (["replay", "events", "--from", "yesterday"], "--from"), (["replay", "events", "--account", "ada"], "--account"),
      (["replay", "events", "--from", "0/1", "--from", "0/2"], "--from: the partition 0 stands there twice"),
      (["replay", "events", "--from", "0/1", "--from", "2026-05-03"], "--from: one time"),
      (["replay", "events", "--out", "a", "--to-topic", "b"], "say one of"),
      (["replay", "events", "--resume", "a"], "--resume"), (["replay", "outcomes", "--to-consumer", "a"], "events"),
      (["replay", "events", "--to-topic", "apple.account-events.v1"], "--to-topic: the records are from there"),
      (["replay", "outcomes", "--to-topic", "apple.account-events.v1"], "--to-topic: a topic of the programs"),
      (
        ["replay", "events", "--to-topic", "apple.account-events.shop.retry.v1"], "--to-topic: a topic of the programs"
      ),
      (["replay", "events", "--account-hash", "00"], "--account-hash"),
    ])
  func whatMakesNoSenseIsRefused(_ words: [String], _ complaint: String) async throws {
    let end = try await RunningProgram.run(
      "siwa", words, ["SIWA_CONFIG": "/dev/null", "SIWA_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"]
    ) { program in try await program.outcome() }
    #expect(end.0 == .exit(2) && end.1 == "" && end.2.contains(complaint), "\(end)")
  }

  @Test func aClusterThatIsAwayIsAskedAgainLater() async throws {
    let end = try await RunningProgram.run(
      "siwa", ["replay", "events"], ["SIWA_CONFIG": "/dev/null", "SIWA_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"]
    ) { program in (try await program.untilEnd(), program.errors) }
    #expect(end.0 == .exit(3) && end.1.contains("siwa: kafka: "), "\(end)")
  }

  @Test func aFileHasAllOfTheRecordsAndATopicGetsThemInTheirOrder() async throws {
    try await run { stage in
      var sent: [KafkaRecord] = []
      for number in 0..<60 {
        let kind: AccountEvent.Kind = number == 59 ? .accountDelete : .consentRevoked
        sent.append(try stage.event(number, kind, of: Person(named: "person-\(number % 7)")))
      }
      sent.append(
        KafkaRecord(
          topic: Topic.accountEvents.name, key: [0, 255], value: nil,
          headers: [KafkaHeader("none", nil), KafkaHeader("none", [UInt8]()), KafkaHeader("ü", [0xff])]))
      for record in sent { try await stage.send(record) }
      let file = stage.files.path + "/events.jsonl"
      let written = try await stage.siwa("replay", "events", "--out", file)
      #expect(written.end == .exit(0) && written.errors == "written: 61 of 61 that were read\n" && written.output == "")
      var status = stat()
      #expect(unsafe stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
      let again = try await stage.siwa("replay", "events", "--out", file)
      #expect(again.end == .exit(1) && again.errors.contains("\(file): is there already"))

      // The file says what the topic says, and asks no cluster for it.
      let fromTopic = try await stage.siwa("replay", "events", "--json", "--personal")
      let fromFile = try await stage.siwa(
        "replay", "--in", file, "--json", "--personal", "--set", "kafka.bootstrap.servers=127.0.0.1:9")
      func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init).sorted() }
      #expect(lines(fromFile.output) == lines(fromTopic.output) && lines(fromFile.output).count == 61)

      let nowhere = try await stage.siwa("replay", "--in", file, "--to-topic", "shop.copy")
      #expect(nowhere.end == .exit(2) && nowhere.errors == "siwa: there is no topic shop.copy\n", "\(nowhere)")
      let own = try await stage.siwa("replay", "--in", file, "--to-topic", Topic.accountEvents.name)
      #expect(own.end == .exit(2) && own.errors.contains("the records are from there"))
      try await stage.makeTopic("shop.copy", partitions: 5)
      let journal = stage.files.path + "/progress"
      let none = try await stage.siwa(
        "replay", "--in", file, "--to-topic", "shop.copy", "--from", "2100-01-01", "--resume", journal)
      #expect(none.end == .exit(1) && none.errors.hasSuffix("siwa: no record is as described\n"), "\(none)")
      #expect(!FileManager.default.fileExists(atPath: journal), "it would say that all was replayed")
      let half = try await stage.siwa(
        "replay", "--in", file, "--to-topic", "shop.copy", "--limit", "20", "--resume", journal)
      #expect(half.end == .exit(0) && half.errors.hasPrefix("replayed: 20 of 20 "), "\(half)")
      let rest = try await stage.siwa("replay", "--in", file, "--to-topic", "shop.copy", "--resume", journal)
      #expect(rest.end == .exit(0) && rest.errors.hasPrefix("replayed: 41 of 41 "), "\(rest)")
      let nothing = try await stage.siwa("replay", "--in", file, "--to-topic", "shop.copy", "--resume", journal)
      #expect(nothing.end == .exit(0) && nothing.errors.hasPrefix("all of it was replayed"), "\(nothing)")
      let other = try await stage.siwa(
        "replay", "--in", file, "--to-topic", "shop.copy", "--type", "account-delete", "--resume", journal)
      #expect(other.end == .exit(1) && other.errors == "siwa: \(journal): of another replay\n")
      // Nor is a part of the topic taken for another one, or a file for the one that had its name.
      let part = try await stage.siwa(
        "replay", "--in", file, "--to-topic", "shop.copy", "--from", "2020-01-01", "--resume", journal)
      #expect(part.end == .exit(1) && part.errors == "siwa: \(journal): of another replay\n", "\(part)")
      try FileManager.default.removeItem(atPath: file)
      let anew = try await stage.siwa("replay", "events", "--limit", "5", "--out", file)
      #expect(anew.end == .exit(0), "\(anew)")
      let replaced = try await stage.siwa("replay", "--in", file, "--to-topic", "shop.copy", "--resume", journal)
      #expect(replaced.end == .exit(1) && replaced.errors == "siwa: \(journal): of another replay\n", "\(replaced)")

      let copies = try await TopicContents.read([Topic(name: "shop.copy")], stage.brokers)["shop.copy"] ?? []
      #expect(copies.count == 61)
      for (key, records) in Dictionary(grouping: sent, by: \.key) {
        let same = copies.filter { $0.key == key }
        #expect(same.map(\.value) == records.map(\.value) && same.map(\.headers) == records.map(\.headers))
        #expect(Set(same.map(\.position.partition)).count == 1)
      }
    }
  }

  /// What is killed while it replays, and what is told to end: neither leaves anything out, and the order of each key
  /// holds.
  @Test func whateverEndsItTheNextOneGoesOn() async throws {
    try await run { stage in
      let count = 30_000
      try await stage.fill(count)
      try await stage.makeTopic("shop.copy", partitions: 3)
      let journal = stage.files.path + "/progress"
      let words = ["replay", "events", "--to-topic", "shop.copy", "--resume", journal]
      for signal in [SIGKILL, SIGTERM] {
        let (copied, noted) = (try await stage.end(of: "shop.copy"), lastChange(of: journal))
        try await RunningProgram.run("siwa", words, stage.environment) { program in
          try await until(every: .milliseconds(1)) {
            if program.hasEnded { return true }
            // What a killed one had sent may be appended later. This one has begun once it has noted where.
            guard lastChange(of: journal) != noted else { return false }
            return try await stage.end(of: "shop.copy") > copied + 100
          }
          program.signal(signal)
          let end = try await program.untilEnd()
          if signal == SIGKILL { #expect(end == .signal(SIGKILL) || end == .exit(0)) }
          if signal == SIGTERM { #expect(end == .exit(3) || end == .exit(0), "\(program.errors)") }
          if end == .exit(3) {
            #expect(program.errors.contains("The same command goes on where it ended"), "\(program.errors)")
          }
        }
      }
      let rest = try await stage.siwa(words)
      #expect(rest.end == .exit(0), "\(rest)")
      let (events, copies) = (
        try await TopicContents.read([.accountEvents], stage.brokers).values.first ?? [],
        try await TopicContents.read([Topic(name: "shop.copy")], stage.brokers).values.first ?? []
      )
      #expect(events.count == count && copies.count >= count)
      let (before, after) = (Dictionary(grouping: events, by: \.key), Dictionary(grouping: copies, by: \.key))
      for (key, records) in before {
        // Each comes in its order; where the killed one had not noted it, a run of them comes again.
        var seen: Set<String> = []
        let firsts = (after[key] ?? []).compactMap { $0.text(of: "ce_id") }.filter { seen.insert($0).inserted }
        #expect(firsts == records.compactMap { $0.text(of: "ce_id") })
      }
      #expect(try await stage.siwa(words).errors.hasPrefix("all of it was replayed"))
    }
  }

  @Test func aTerminalIsShownHowFarItIs() async throws {
    try await run { stage in
      try await stage.fill(30_000)
      let file = stage.files.path + "/events.jsonl"
      let siwa = RunningProgram.path(of: "siwa")
      let seen = try await RunningProgram.run(
        path: "/usr/bin/script", ["-qec", "\(siwa) replay events --out \(file)", "/dev/null"], stage.environment
      ) { program in (try await program.untilEnd(), program.output) }
      #expect(seen.0 == .exit(0) && seen.1.contains("written: 30000 of 30000 that were read"), "\(seen)")
      let bars = seen.1.split(separator: "\r").filter { $0.hasPrefix("[") }
      #expect(!bars.isEmpty && bars.allSatisfy { $0.contains("% ") && $0.contains(" of 30000 records  ") }, "\(seen.1)")
      #expect(bars.contains { $0.contains("/s, 0:0") && $0.contains(" left") } && bars.allSatisfy { $0.count <= 79 })
    }
  }

  // MARK: The stage

  /// When a file was last written, in nanoseconds; nil where there is none.
  private func lastChange(of path: String) -> Int? {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
  }

  private func run(_ body: @Loop (ReplayStage) async throws -> Void) async throws {
    let broker = try await RealBroker()
    let stage = try await ReplayStage(broker.bootstrapServers)
    let result: Result<Void, any Error>
    do { result = .success(try await body(stage)) } catch { result = .failure(error) }
    await stage.close()
    try result.get()
  }

  @Loop
  private final class ReplayStage {
    let brokers: String
    let files = TemporaryDirectory()
    private let producer: Producer
    private let admin: Admin

    init(_ brokers: String) async throws {
      self.brokers = brokers
      let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", brokers)])
      producer = try Producer(configuration, deadline: .seconds(300), maximumWaiting: 100_000, log: { _ in })
      admin = try Admin(configuration, log: { _ in })
      try await makeTopic(Topic.accountEvents.name, partitions: 3)
    }

    var environment: [String: String] {
      ["SIWA_CONFIG": "/dev/null", "SIWA_KAFKA_BOOTSTRAP_SERVERS": brokers]
    }

    func makeTopic(_ name: String, partitions: Int) async throws {
      _ = try await admin.createTopics(
        [NewTopic(name, partitions: partitions, replicationFactor: 1)], within: .seconds(300))
      _ = try await admin.awaitTopic(name, within: .seconds(300))
    }

    func end(of topic: String) async throws -> Int64 {
      try await admin.endOffsets(of: topic, within: .seconds(300)).values.reduce(0, +)
    }

    func event(_ number: Int, _ kind: AccountEvent.Kind, of person: Person) throws -> KafkaRecord {
      let event = AccountEvent.sample("event-\(number)", kind, of: person, at: number)
      return KafkaRecord(EventRecord(event, jws: Array(ReplayCommandTests.jws.utf8)))
    }

    func send(_ record: KafkaRecord) async throws { _ = try await producer.send(record) }

    /// Events of a hundred people.
    func fill(_ count: Int) async throws {
      var records: [KafkaRecord] = []
      for number in 0..<count {
        records.append(try event(number, .consentRevoked, of: Person(named: "person-\(number % 100)")))
      }
      for result in await producer.send(records) { _ = try result.get() }
    }

    func siwa(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
      try await siwa(words)
    }

    func siwa(
      _ words: [String], input: String = ""
    ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
      try await RunningProgram.run("siwa", words, environment) { program in
        try program.write(input)
        program.endInput()
        return try await program.outcome()
      }
    }

    func close() async {
      await producer.close(within: .seconds(10))
      await admin.close()
    }
  }
}
