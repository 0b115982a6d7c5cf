import AccountEvents
import AccountServices
import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import Kafka
import TestSupport
import Testing

/// `siwa quarantine` beside a running ingress and a running consumer, on a real broker.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct QuarantineCommandTests {
  /// What was answered stands on its topic, and in no spool, however slow a new broker is.
  private static let withoutSpool = ["SIWA_INGRESS_SPOOL_AFTER": "29s"]

  @Test func whatAWrongClockHasPutAsideIsReleasedAndHasItsEffectsOnce() async throws {
    try await run { stage, simulator in
      let people = ["dan", "eve", "ada"].map { Person(named: $0) }
      try stage.shop.welcome(people)
      let faults = try await PreloadedFaults(files: stage.files, folder: stage.files.path + "/spool")
      let ingress = try await stage.startIngress(faults.environment.merging(Self.withoutSpool) { $1 })
      try await ingress.untilReady()
      let url = try ingress.url

      // The clock of the ingress falls two hours behind: what Apple signs lies ahead of it.
      faults.clockOffset = .seconds(-7200)
      var events: [String] = []
      for name in ["dan", "eve"] { events.append(try await simulator.notify(.accountDelete, name, to: url)) }
      faults.clockOffset = .zero
      events.append(try await simulator.notify(.consentRevoked, "ada", to: url))
      try await until {
        try await ingress.get("/metrics").text.contains(
          #"siwa_ingress_events_quarantined_total{reason="not-yet-valid"} 2"#)
      }
      let eraser = try await stage.start(.dataEraser)
      try await until(every: .milliseconds(100)) { try stage.shop.customers() == Set(people[..<2].map(\.subject)) }

      let list = try await stage.siwa("quarantine", "list")
      #expect(list.end == .exit(0) && list.errors == "")
      let words = list.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      #expect(words.map { $0[0] } == ["0/0", "0/1"])
      #expect(words.allSatisfy { Array($0[3...4]) == ["not-yet-valid", "account-delete"] }, "\(list)")
      #expect(words.map { $0[5] } == Array(events[..<2]))
      #expect(!people.contains { list.output.contains($0.subject) }, "a list names nobody")
      let json = try await stage.siwa("quarantine", "list", "--json")
      let letters = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]])
      #expect(letters.map { $0["event"] as? String } == Array(events[..<2]))
      #expect(letters.map { $0["audience"] as? String } == [AppleSide.app, AppleSide.app])

      let discreet = try await stage.siwa("quarantine", "show", "--letter", "0/0")
      #expect(discreet.end == .exit(0) && discreet.output.contains("quarantine-reason: not-yet-valid\n"))
      #expect(discreet.output.contains("apple-jws: (personal)\n"))
      #expect(!discreet.output.contains(people[0].subject) && discreet.output.firstMatch(of: /eyJ[\w-]+\.eyJ/) == nil)
      let personal = try await stage.siwa("quarantine", "show", "--letter", "0/0", "--personal")
      #expect(personal.output.contains(people[0].subject) && personal.output.contains("apple-jws: eyJ"))

      // Nobody is erased by a question.
      let all = ["quarantine", "release", "--all", "--cause", "not-yet-valid"]
      let rehearsal = try await stage.siwa(all + ["--dry-run"])
      #expect(rehearsal.end == .exit(0) && rehearsal.output.hasPrefix("would be released  0/0 "), "\(rehearsal)")
      #expect(rehearsal.errors.hasSuffix("would be released: 2 of 2\n"))
      #expect(try await stage.siwa("quarantine", "list").output.split(separator: "\n").count == 2)

      let release = try await stage.siwa(all + ["--reason", "the clock was behind", "--by", "grace"])
      #expect(release.end == .exit(0) && release.errors.hasSuffix("released: 2 of 2\n"), "\(release)")
      #expect(release.output.split(separator: "\n").count == 2)
      #expect(try await stage.siwa("quarantine", "list").output == "None waits.\n")
      let again = try await stage.siwa("quarantine", "release", "--letter", "0/0")
      #expect(again.end == .exit(1) && again.errors.contains("no letter waits at 0/0"))
      #expect(try await stage.siwa(all).end == .exit(0), "there is nothing left to do")
      try await until(every: .milliseconds(100)) { try stage.shop.customers().isEmpty }

      // Whoever was killed before the note publishes the same once more; and Apple may deliver it again.
      let brokers = stage.broker.bootstrapServers
      let published = try await TopicContents.read([.accountEvents], brokers)[Topic.accountEvents.name] ?? []
      let dan = try #require(published.first { $0.text(of: "ce_id") == events[0] })
      try await stage.send([KafkaRecord(topic: dan.topic, key: dan.key, value: dan.value, headers: dan.headers)])
      let progress = try GroupProgress(brokers)
      try await until(every: .milliseconds(100)) { try await progress.isDone(.dataEraser) }
      await progress.close()
      let outcomes = try await TopicContents.read([.outcomes], brokers).values.flatMap { $0 }
      #expect(
        outcomes.compactMap { $0.text(of: "ce_id") }.sorted() == events.map { "\($0).account-erased" }.sorted())

      // What is left of them in quarantine is who decided, when and why.
      let notes = try await TopicContents.read([.quarantine], brokers)[Topic.quarantine.name]?.dropFirst(2) ?? []
      #expect(notes.count == 2)
      for (note, event) in zip(notes, events) {
        #expect(note.key == Array("\(AppleSide.team) \(AppleSide.app) \(event)".utf8))
        #expect(note.text(of: "handled") == "released" && note.text(of: "handled-by") == "grace")
        #expect(note.text(of: "handled-reason") == "the clock was behind")
        #expect(!note.headers.contains { $0.name.hasPrefix("ce_") || $0.name == "apple-jws" })
      }
      #expect(try await eraser.end() == .exit(0))
      #expect(try await ingress.end() == .exit(0))
    }
  }

  @Test func whatNobodyUnderstandsStaysUntilAPersonSaysThatNothingFollows() async throws {
    try await run { stage, simulator in
      let ingress = try await stage.startIngress(Self.withoutSpool)
      try await ingress.untilReady()
      for (name, fault) in [("dan", Fault.unknownType), ("eve", .eventWithoutTime), ("dan", .expired)] {
        try await simulator.order(
          "notify",
          [
            "type": "consent-revoked", "user": name, "audience": AppleSide.app, "to": try ingress.url.text,
            "faults": [fault.rawValue],
          ])
      }
      let release = try await stage.siwa("quarantine", "release", "--letter", "0/0", "--letter", "0/1")
      #expect(release.end == .exit(1) && release.output == "")
      #expect(release.errors.contains("siwa: 0/0 stays: this version does not know its type either\n"))
      #expect(release.errors.contains("siwa: 0/1 stays: this version does not know its form either\n"))
      #expect(release.errors.hasSuffix("released: 0 of 2, left: 2\n"))
      #expect(try await stage.siwa("quarantine", "list").output.split(separator: "\n").count == 3)

      // What a withdrawn key has signed is verified as any other, and yet no part of all.
      try await replaceLastLetter(stage, reason: "retired-key")
      let all = try await stage.siwa("quarantine", "release", "--all", "--dry-run")
      #expect(all.end == .exit(1) && all.output == "")
      let left = "siwa: 0/3 stays: its key was withdrawn; name it, or --cause retired-key\n"
      #expect(all.errors.contains(left), "\(all)")
      #expect(all.errors.hasSuffix("would be released: 0 of 3, left: 3\n"), "\(all)")
      for named in [["--letter", "0/3"], ["--all", "--cause", "retired-key"]] {
        let meant = try await stage.siwa(["quarantine", "release", "--dry-run"] + named)
        #expect(meant.end == .exit(0) && meant.errors.hasSuffix("would be released: 1 of 1\n"), "\(meant)")
      }

      // All of a person's, once the account is erased.
      let account = "\(AppleSide.team)/\(Person(named: "dan").subject)"
      let silent = try await stage.siwa("quarantine", "discard", "--account", account)
      #expect(silent.end == .exit(2) && silent.errors.contains("--reason"))
      let wrong = try await stage.siwa("quarantine", "discard", "--account", "dan", "--reason", "erased")
      #expect(wrong.end == .exit(2) && wrong.errors.contains("--account"))
      let discard = try await stage.siwa(
        "quarantine", "discard", "--account", account, "--reason", "the account is erased")
      #expect(discard.end == .exit(0) && discard.errors.hasSuffix("discarded: 2 of 2\n"), "\(discard)")
      #expect(!discard.output.contains(Person(named: "dan").subject))
      let waiting = try await stage.siwa("quarantine", "list").output
      #expect(waiting.hasPrefix("0/1 ") && waiting.split(separator: "\n").count == 1)
      #expect(try await stage.siwa("quarantine", "discard", "--all", "--reason", "a rehearsal").end == .exit(0))
      #expect(try await stage.siwa("quarantine", "list").output == "None waits.\n")
      #expect(try await ingress.end() == .exit(0))
    }
  }

  @Test func whatItsOwnTopicRefusesWaitsForAPersonAndForNobodyElse() async throws {
    try await run { stage, simulator in
      let (dan, eve) = (Person(named: "dan"), Person(named: "eve"))
      try stage.shop.welcome([dan, eve])
      func configure(_ change: String...) async throws {
        try await stage.broker.run(
          "kafka-configs.sh",
          ["--alter", "--entity-type", "topics", "--entity-name", Topic.accountEvents.name] + change)
      }
      let ingress = try await stage.startIngress()
      try await ingress.untilReady()
      try await configure("--add-config", "max.message.bytes=1")
      let url = try ingress.url
      let event = try await simulator.notify(.accountDelete, "dan", to: url)
      func hasMetric(_ line: String) async throws -> Bool { try await ingress.get("/metrics").text.contains(line) }
      try await until(every: .milliseconds(100)) {
        try await hasMetric(#"siwa_ingress_events_quarantined_total{reason="refused"} 1"#)
      }
      try await until(every: .milliseconds(100)) { try await hasMetric("\nsiwa_spool_records 0\n") }
      #expect(try await hasMetric("\nsiwa_spool_refused_records 0\n"))
      let list = try await stage.siwa("quarantine", "list")
      #expect(list.output.contains("  refused  ") && list.output.contains(event), "\(list)")

      let all = ["quarantine", "release", "--all", "--cause", "refused"]
      let early = try await stage.siwa(all)
      #expect(early.end == .exit(1) && early.errors.hasSuffix("released: 0 of 1, left: 1\n"), "\(early)")
      try await configure("--delete-config", "max.message.bytes")
      let release = try await stage.siwa(all)
      #expect(release.end == .exit(0) && release.errors.hasSuffix("released: 1 of 1\n"), "\(release)")
      let eraser = try await stage.start(.dataEraser)
      try await until(every: .milliseconds(100)) { try stage.shop.customers() == [eve.subject] }
      #expect(try await eraser.end() == .exit(0))
      #expect(try await ingress.end() == .exit(0))
    }
  }

  /// Puts the last letter in quarantine there again, in its own place, for another reason.
  private func replaceLastLetter(_ stage: ConsumerStage, reason: String) async throws {
    let letters = try await TopicContents.read([.quarantine], stage.broker.bootstrapServers)[Topic.quarantine.name]
    let letter = try #require(letters?.last)
    let headers = letter.headers.map {
      $0.name == "quarantine-reason" ? KafkaHeader($0.name, Array(reason.utf8)) : $0
    }
    try await stage.send([KafkaRecord(topic: letter.topic, key: letter.key, value: letter.value, headers: headers)])
  }

  private func run(_ body: @Loop (ConsumerStage, SimulatorProgram) async throws -> Void) async throws {
    try await ConsumerStage.run { stage, simulator in
      try await body(stage, simulator)
    }
  }
}
