import AccountEvents
import AccountServices
import EventLoop
import Foundation
import Kafka
import SQLite
import Telemetry
import TestSupport
import Testing

/// `siwa spool`, beside the process that has the spool.
@Loop @Suite(.serialized) struct SpoolCommandTests {
  private let files = TemporaryDirectory()
  private var directory: String { files.path + "/spool" }

  private func siwa(
    _ words: [String], _ environment: [String: String] = [:]
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", ["spool"] + words, environment) { program in
      try await program.outcome()
    }
  }

  /// A spool with three records of Ada's in it.
  private func filled() async throws -> Spool {
    let start = try #require(Timestamp(milliseconds: 1_767_225_600_000))
    let spool = try await Spool.open(
      directory: directory, limit: 1 << 20, now: { start }, registry: MetricsRegistry(),
      logger: CapturedLog().logger())
    for number in 1...3 {
      _ = try await spool.insert(
        EventRecord(
          topic: .accountEvents, key: Array("A1B2C3D4E5/ada".utf8), value: Array(#"{"sub":"ada"}"#.utf8),
          headers: [
            EventRecord.Header(name: "ce_id", value: Array("event-\(number)".utf8)),
            EventRecord.Header(name: "ce_type", value: Array("com.apple.siwa.consent-revoked.v1".utf8)),
            EventRecord.Header(name: "ce_subject", value: Array("ada".utf8)),
          ]))
    }
    return spool
  }

  @Test(.timeLimit(.minutes(30)))
  func showsWhatWaits() async throws {
    let spool = try await filled()
    let outcome = try await siwa(["--directory", directory, "--list", "--limit", "2"])
    #expect(outcome.end == .exit(0) && outcome.errors == "" && !outcome.output.contains("ada"))
    let lines = outcome.output.split(separator: "\n").map(String.init)
    #expect(lines.count == 7, "\(outcome.output)")
    #expect(lines.prefix(3) == ["Spool    \(directory)", "Records  3", "Bytes    \(spool.bytes)"])
    #expect(lines[3].hasPrefix("Oldest   2026-01-01T00:00:00.000Z, ") && lines[3].hasSuffix(" seconds ago"))
    #expect(lines[4] == "3  apple.account-events.v1  com.apple.siwa.consent-revoked.v1")
    #expect(
      lines[6]
        == "2  2026-01-01T00:00:00.000Z  apple.account-events.v1  com.apple.siwa.consent-revoked.v1  event-2")
    await spool.close()

    // The directory as the configuration has it, of which nothing else is needed; nobody has the spool now.
    let json = try await siwa(["--json"], ["SIWA_INGRESS_SPOOL_DIRECTORY": directory])
    #expect(json.end == .exit(0) && json.errors == "" && !json.output.contains("list"))
    #expect(json.output.hasPrefix(#"{"directory":"\#(directory)","records":3,"bytes":"#))
    #expect(
      json.output.hasSuffix(
        #""counts":[{"topic":"apple.account-events.v1","type":"com.apple.siwa.consent-revoked.v1","records":3}]}"#
          + "\n"))
    let listed = try await siwa(["--json", "--list", "--directory", directory])
    #expect(
      listed.output.contains(
        #""list":[{"sequence":1,"since":1767225600000,"topic":"apple.account-events.v1","#
          + #""type":"com.apple.siwa.consent-revoked.v1","event":"event-1"},"#))

    let database = try Database(directory + "/spool.sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.execute("UPDATE record SET headers = x'ff' WHERE sequence > 1")
    let damaged = try await siwa(["--directory", directory])
    #expect(damaged.end == .exit(0) && damaged.output.contains("\nDamaged  2, which stay: 2, 3\n1  apple."))
  }

  @Test(.timeLimit(.minutes(30)))
  func whatGetsNowhereIsSomebodysDecision() async throws {
    func run(_ verb: String, _ words: String...) async throws -> (RunningProgram.End, output: String, errors: String) {
      let outcome = try await siwa([verb, "--directory", directory] + words, ["USER": "eve"])
      return (outcome.end, outcome.output, outcome.errors)
    }
    let spool = try await filled()
    let shown = try await run("show", "--record", "2")
    #expect(shown.0 == .exit(0) && shown.errors == "" && !shown.output.contains("ada"))
    #expect(shown.output.hasPrefix("record: 2\n") && shown.output.contains("\nce_id: event-2\n"))
    let whole = try await run("show", "--record", "2", "--personal")
    #expect(whole.output.contains("\nkey: A1B2C3D4E5/ada\n") && whole.output.hasSuffix(#"\#n{"sub":"ada"}\#n"#))
    #expect(try await run("show", "--record", "9").errors == "siwa: no record 9 waits\n")
    let words = ["--record", "2", "--reason", "a rehearsal"]
    let busy = try await run("discard", words[0], words[1], words[2], words[3])
    #expect(busy.0 == .exit(1) && busy.output == "")
    #expect(busy.errors == "siwa: the spool in \(directory): the ingress has it: end that one first\n")
    await spool.close()

    #expect(try await run("discard", "--record", "2").0 == .exit(2), "not without a reason")
    let discarded = try await run("discard", words[0], words[1], words[2], words[3])
    #expect(discarded.0 == .exit(0) && discarded.output == "discarded  2\n" && discarded.errors == "")
    let again = try await run("discard", words[0], words[1], words[2], words[3])
    #expect(again.0 == .exit(1) && again.errors == "siwa: no record 2 waits\n")
    let list = try await run("list").output.split(separator: "\n")
    #expect(list.map { $0.prefix(3) } == ["1  ", "3  "])
    #expect(try await run("list", "--json", "--limit", "1").output.hasPrefix(#"[{"record":1,"since":1767225600000,"#))
    let notes = try String(contentsOfFile: directory + "/decisions.jsonl", encoding: .utf8)
    #expect(notes.split(separator: "\n").count == 1 && !notes.contains("ada"))
    for part in [#""by":"eve""#, #""reason":"a rehearsal""#, #""event":"event-2""#] { #expect(notes.contains(part)) }
    // As cron runs it.
    let nameless = try await siwa(
      ["discard", "--directory", directory, "--record", "3", "--reason", "it too"], ["USER": ""])
    #expect(nameless.end == .exit(0))
    let last = try #require(
      try String(contentsOfFile: directory + "/decisions.jsonl", encoding: .utf8).split(separator: "\n").last)
    #expect(last.contains(#""by":""#) && !last.contains(#""by":"""#) && !last.contains(#""by":"unknown""#), "\(last)")
  }

  /// What a host left behind that is no more.
  @Test(.timeLimit(.minutes(30)))
  func aSpoolThatNobodyServesIsPublishedByHand() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    let brokers = cluster.bootstrapServers
    let spool = try await filled()
    await spool.close()
    func release(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
      try await siwa(
        ["release", "--directory", directory] + words,
        ["SIWA_CONFIG": "/dev/null", "SIWA_KAFKA_BOOTSTRAP_SERVERS": brokers, "USER": "eve"])
    }
    let overtaking = try await release("--record", "3")
    #expect(overtaking.end == .exit(1) && overtaking.output == "")
    #expect(overtaking.errors.hasPrefix("siwa: record 1 is of the same user and comes first"))
    let all = try await release("--all")
    #expect(all.end == .exit(0) && all.errors == "" && all.output == "released  1\nreleased  2\nreleased  3\n")
    #expect(try SpoolReport(lookingInto: directory, listing: 0).records == 0)
    try await TopicReader.run(brokers) { reader in
      var offsets: [Int64] = []
      for number in 1...3 {
        let record = try await reader.record(of: "event-\(number)")
        #expect(record.key == Array("A1B2C3D4E5/ada".utf8))
        offsets.append(record.position.offset)
      }
      #expect(offsets == offsets.sorted())
    }
    let notes = try String(contentsOfFile: directory + "/decisions.jsonl", encoding: .utf8)
    #expect(notes.split(separator: "\n").count { $0.contains(#""decision":"released""#) } == 3)
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func whatKafkaRefusesForItselfHindersNoOtherUser() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    let brokers = cluster.bootstrapServers
    let spool = try await filled()
    for (person, size) in [("bob", 5000), ("bob", 10), ("eve", 10)] {
      _ = try await spool.insert(
        EventRecord(
          topic: .accountEvents, key: Array("A1B2C3D4E5/\(person)".utf8),
          value: Array(repeating: UInt8(ascii: "v"), count: size), headers: []))
    }
    await spool.close()
    func release(_ more: [String: String]) async throws -> (end: RunningProgram.End, output: String, errors: String) {
      let settings = ["SIWA_CONFIG": "/dev/null", "SIWA_KAFKA_BOOTSTRAP_SERVERS": brokers, "USER": "eve"]
      return try await siwa(
        ["release", "--directory", directory, "--all"], settings.merging(more) { $1 })
    }
    let first = try await release(["SIWA_KAFKA_MESSAGE_MAX_BYTES": "2000"])
    #expect(first.end == .exit(1) && first.output == "released  1\nreleased  2\nreleased  3\nreleased  6\n")
    let lines = first.errors.split(separator: "\n")
    #expect(lines.first?.hasPrefix("siwa: record 4 stays: Kafka refuses it: recordTooLarge: ") == true, "\(first)")
    #expect(lines.dropFirst() == ["siwa: record 5 stays: record 4 is of the same user and comes first"])
    let second = try await release([:])
    #expect(second.end == .exit(0) && second.output == "released  4\nreleased  5\n", "\(second)")
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func saysWhyItShowsNothing() async throws {
    let missing = try await siwa(["--directory", directory])
    #expect(missing.end == .exit(1) && missing.output == "")
    #expect(missing.errors == "siwa: the spool in \(directory): there is none\n")
    let wrong = try await siwa([], ["SIWA_INGRESS_SPOOL_DIRECTORY": ""])
    #expect(wrong.end == .exit(2) && wrong.output == "" && wrong.errors.contains("SIWA_INGRESS_SPOOL_DIRECTORY"))
    #expect(try await siwa(["--limit", "0"]).end == .exit(2))
  }
}
