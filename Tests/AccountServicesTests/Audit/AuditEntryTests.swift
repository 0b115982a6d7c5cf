import AccountEvents
import AccountServices
import AccountStore
import Cryptography
import Foundation
import Kafka
import TestSupport
import Testing

@Suite struct AuditEntryTests {
  /// What was logged once is what verifiers have learned to read.
  @Test(arguments: AuditSamples.golden.map(\.name))
  func writesAndReadsTheGoldenBytes(_ name: String) throws {
    let entry = try #require(AuditSamples.golden.first { $0.name == name }).entry
    let golden = try Repository.bytes("Tests/AccountServicesTests/Golden/\(name).entry").dropLast()
    #expect(String(decoding: entry.bytes, as: UTF8.self) == String(decoding: golden, as: UTF8.self))
    #expect(try AuditEntry(decoding: Array(golden)) == entry)
  }

  @Test(Python.isThere) func anotherImplementationReadsTheEntries() async throws {
    let decisions = AuditEntry.Decision.Kind.allCases.map { kind in
      var decision = AuditSamples.released
      (decision.kind, decision.person, decision.reason) = (kind, "", "\u{7}\u{20ac}\u{1f600}\u{2028}\u{fb33}</script>")
      return AuditEntry.decision(decision)
    }
    let obligations = AuditEntry.Obligation.Signature.allCases.map { signature in
      var obligation = AuditSamples.obligation
      (obligation.signature, obligation.source) = (
        signature, AuditEntry.Source(RecordOrigin("t", .max, (1 << 53) - 1), at: nil)
      )
      return AuditEntry.obligation(obligation)
    }
    let effects = try [1000, 0].map { count in
      AuditEntry.effect(
        try #require(AuditEntry.Effect(AuditSamples.read(EventRecord(AuditSamples.outcome(targets: count))))))
    }
    let gaps = AuditEntry.Gap.Cause.allCases.map { cause in
      var gap = AuditSamples.gap
      gap.cause = cause
      return AuditEntry.gap(gap)
    }
    let entries = AuditSamples.golden.map(\.entry) + decisions + obligations + effects + gaps
    for entry in entries { #expect(try AuditEntry(decoding: entry.bytes) == entry) }
    let input = entries.flatMap { $0.bytes + [UInt8(ascii: "\n")] }
    let outcome = try await Python.run("Tests/AccountServicesTests/Python/check_entries.py", input: input)
    #expect(outcome.end == .exit(0), "\(outcome.errors)")
  }

  @Test(arguments: [
    (#""v":1"#, #""v":2"#, AuditEntryError.Code.unknownForm),
    (#""kind":"obligation""#, #""kind":"wish""#, .unknownForm),
    (#""kid""#, #""key""#, .notCanonical), (#""account""#, #" "account""#, .notCanonical),
    (#""offset":17,"partition":3"#, #""partition":3,"offset":17"#, .notCanonical),
    (#""v":1"#, #""v":1,"x":null"#, .notCanonical), (#""fh6Bs8C""#, #""fh6Bs8\u0043""#, .notCanonical),
    (#""v":1"#, #""v":1,"v":1"#, .malformedJSON), (#""v":1}"#, #""v":1"#, .malformedJSON),
    (#""offset":17"#, #""offset":-1"#, .malformedMember), (#""offset":17"#, #""offset":1.5"#, .malformedJSON),
    (#""offset":17"#, #""offset":"17""#, .malformedMember),
    (#""partition":3"#, #""partition":2147483648"#, .malformedMember),
    (#""team":"A"#, #""team":"a"#, .malformedMember),
    (#""signature":"verified""#, #""signature":"fine""#, .malformedMember),
    (#""type":"account-delete""#, #""type":"""#, .malformedMember),
    (#""kid":"fh6Bs8C""#, #""kid":" ""#, .malformedMember),
    (#""jws_sha256":"5"#, #""jws_sha256":""#, .malformedMember), (#""topic":"apple"#, #""topic":"/"#, .malformedMember),
    (#""record_time":1"#, #""record_time":-1"#, .malformedMember),
    (#""account":"0"#, #""account":"G"#, .malformedMember),
  ])
  func refusesWhatIsNoEntry(_ old: String, _ new: String, _ code: AuditEntryError.Code) throws {
    let json = String(decoding: AuditEntry.obligation(AuditSamples.obligation).bytes, as: UTF8.self)
    let changed = try #require(json.firstRange(of: old).map { json.replacingCharacters(in: $0, with: new) })
    let error = #expect(throws: AuditEntryError.self) { try AuditEntry(decoding: Array(changed.utf8)) }
    #expect(error?.code == code)
  }

  @Test func refusesBytesBeyondTheLimit() {
    let bytes = [UInt8](repeating: UInt8(ascii: " "), count: AuditEntry.maximumSize) + Array("{}".utf8)
    let error = #expect(throws: AuditEntryError.self) { try AuditEntry(decoding: bytes) }
    #expect(error?.code == .malformedJSON)
  }

  // MARK: Keys

  @Test func aRecordThatStandsTwiceHasOneKey() throws {
    let record = EventRecord(AuditSamples.outcome())
    let first = try #require(AuditEntry.Effect(AuditSamples.read(record, 1, 7)))
    let second = try #require(
      AuditEntry.Effect(AuditSamples.read(record, 2, 9, at: AuditSamples.loggedAt + .seconds(5))))
    #expect(first != second && EntryKey(.effect(first)) == EntryKey(.effect(second)))

    var again = AuditSamples.released
    again.source = AuditSamples.source(.quarantine, 0, 5)
    #expect(EntryKey(.decision(again)) == EntryKey(.decision(AuditSamples.released)))
  }

  @Test func aSecondNotificationOfAnEventIsTheSameObligation() {
    var second = AuditSamples.obligation
    second.source = AuditSamples.source(.accountEvents, 0, 99)
    (second.jws, second.keyID, second.signature) = (nil, nil, .refused)
    second.issuedAt = AuditSamples.loggedAt
    #expect(EntryKey(.obligation(second)) == EntryKey(.obligation(AuditSamples.obligation)))
  }

  @Test func whatIsNotTheSameHasAnotherKey() throws {
    // That of another hashing key is the same obligation as the first.
    var keys = AuditSamples.golden.filter { $0.name != "obligation-rekeyed" }.map { EntryKey($0.entry) }
    var obligation = AuditSamples.obligation
    obligation.id = try #require(EventID("S25cB0PbHs6y97gYYmgydR"))
    keys.append(EntryKey(.obligation(obligation)))
    obligation = AuditSamples.obligation
    obligation.team = try #require(TeamID("A1B2C3D4E6"))
    keys.append(EntryKey(.obligation(obligation)))
    obligation = AuditSamples.obligation
    obligation.audience = try #require(ClientID("com.example.apps"))
    keys.append(EntryKey(.obligation(obligation)))
    for change: (inout AuditEntry.Decision) -> Void in [
      { $0.reason = "another" }, { $0.person = "eve" }, { $0.time = AuditSamples.loggedAt }, { $0.kind = .retried },
      { $0.letter = LetterPlace("0/8") },
      { $0.source = AuditSamples.source(.deadLetters(of: "email-relay"), 0, 9) },
    ] {
      var decision = AuditSamples.discarded
      change(&decision)
      keys.append(EntryKey(.decision(decision)))
    }
    for change: (inout AuditEntry.Gap) -> Void in [
      { $0.from = 6 }, { $0.to = 9 }, { $0.partition = 0 }, { $0.cause = .begunAnew },
      { $0.time = AuditSamples.issuedAt },
    ] {
      var gap = AuditSamples.gap
      change(&gap)
      keys.append(EntryKey(.gap(gap)))
    }
    #expect(Set(keys.map(\.identity)).count == keys.count)
  }

  @Test func allEntriesOfAnEventAreFoundByIt() {
    let event = EntryKey.event(AuditSamples.id)
    let named = ["obligation", "obligation-rekeyed", "effect", "decision-discarded", "decision-released"]
    for (name, entry) in AuditSamples.golden {
      #expect((EntryKey(entry).event == event) == named.contains(name), "\(name)")
    }
  }

  // MARK: Records

  @Test func anOutcomeKeepsWhatThisVersionDoesNotKnow() throws {
    let value = Array(
      #"{"outcome":"moved","cause":{"id":"S25cB0PbHs6y97gYYmgydQ","x":[1,null]},"b":"\u20ac","a":true}"#.utf8)
    let record = EventRecord(topic: .outcomes, key: nil, value: value, headers: [])
    let effect = try #require(AuditEntry.Effect(AuditSamples.read(record)))
    #expect(
      String(decoding: effect.outcome, as: UTF8.self)
        == #"{"a":true,"b":"€","cause":{"id":"S25cB0PbHs6y97gYYmgydQ","x":[1,null]},"outcome":"moved"}"#)
    #expect(effect.cause == AuditSamples.id && effect.abridged == nil)
  }

  @Test func anOutcomeThatDoesNotFitLeavesItsTargetsOut() throws {
    let record = EventRecord(AuditSamples.outcome(targets: 1000))
    let effect = try #require(AuditEntry.Effect(AuditSamples.read(record)))
    #expect(effect.abridged == SHA256.digest(of: record.value))
    #expect(try AccountOutcome(decoding: effect.outcome) == AuditSamples.outcome(targets: 0))
    #expect(AuditEntry.effect(effect).bytes.count < 1024)
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"cause":{"id":7}}"#, #"{"cause":{"id":" "}}"#, #"{"cause":{"id":"a"},"n":1.5}"#, #"{"cause":"#,
    #"{"cause":{"id":"a"},"x":""# + String(repeating: "x", count: 65_536) + #""}"#,
  ])
  func noEffectIsMadeOfWhatIsNoOutcome(_ value: String) {
    let record = EventRecord(topic: .outcomes, key: nil, value: Array(value.utf8), headers: [])
    #expect(AuditEntry.Effect(AuditSamples.read(record)) == nil)
  }

  /// A letter of quarantine, what is noted of it, and that note as it is read.
  private func note(
    _ decision: LetterDecision, on topic: LetterTopic, _ letter: ConsumedRecord
  ) throws -> ConsumedRecord {
    var letters = Letters(on: topic)
    letters.read(letter)
    let waiting = try #require(letters.letters.first)
    let note = try #require(letters.decide(waiting, decision).last)
    return ConsumedRecord(
      topic: note.topic, position: KafkaPosition(partition: 0, offset: 2), key: note.key, value: note.value,
      headers: note.headers, timestamp: AuditSamples.loggedAt.milliseconds)
  }

  @Test func aNoteInQuarantineIsADecision() throws {
    let event = QuarantinedEvent(
      id: AuditSamples.id, team: AuditSamples.team, audience: AuditSamples.audience, subject: AuditSamples.subject,
      issuedAt: AuditSamples.issuedAt, reason: .expired, json: Array("{}".utf8))
    let letter = AuditSamples.read(EventRecord(event, jws: AuditSamples.jws), 0, 1)
    #expect(AuditEntry.Decision(letter, on: .quarantine) == nil)
    let decision = LetterDecision(.released, because: nil, by: "alice", at: AuditSamples.issuedAt)
    let note = try note(decision, on: .quarantine, letter)
    #expect(AuditEntry.Decision(note, on: .quarantine) == AuditSamples.released)
    let tombstone = ConsumedRecord(
      topic: note.topic, position: note.position, key: note.key, value: nil, headers: note.headers,
      timestamp: note.timestamp)
    #expect(AuditEntry.Decision(tombstone, on: .quarantine) == nil)
  }

  @Test func aNoteOnADeadLetterIsADecision() throws {
    let consumer: ConsumerName = "data-eraser"
    let letter = ConsumedRecord(
      topic: Topic.deadLetters(of: consumer).name, position: KafkaPosition(partition: 0, offset: 7),
      key: Array("apple.account-events.v1/3/17/\(AuditSamples.id)".utf8), value: [1],
      headers: [KafkaHeader("dead-letter-cause", "not-ours")], timestamp: nil)
    let decision = LetterDecision(
      .discarded, because: AuditSamples.discarded.reason, by: "bob", at: AuditSamples.issuedAt)
    var expected = AuditSamples.discarded
    expected.source = AuditSamples.source(.deadLetters(of: consumer), 0, 2)
    let note = try note(decision, on: .deadLetters(of: consumer), letter)
    #expect(AuditEntry.Decision(note, on: .deadLetters(of: consumer)) == expected)
  }

  /// Letters of earlier versions had other keys, which could be an account's.
  @Test(arguments: [
    "A1B2C3D4E5/ada", "0/7", "apple.account-events.v1/3/17/1657617063012", "apple.account-events.v1/3/17/-",
  ])
  func aNoteNamesNobodyByItsKey(_ key: String) throws {
    for topic in [LetterTopic.quarantine, .deadLetters(of: "data-eraser")] {
      let note = ConsumedRecord(
        topic: topic.topic.name, position: KafkaPosition(partition: 0, offset: 2), key: Array(key.utf8), value: [1],
        headers: [
          KafkaHeader("handled", "discarded"), KafkaHeader("handled-by", "bob"),
          KafkaHeader("handled-reason", String(repeating: "€", count: 10_000)),
        ], timestamp: AuditSamples.loggedAt.milliseconds)
      let decision = try #require(AuditEntry.Decision(note, on: topic))
      #expect(decision.id == nil && decision.team == nil && decision.audience == nil && decision.letter == nil)
      #expect(decision.time == AuditSamples.loggedAt && decision.person == "bob")
      // Cut between two characters, and marked.
      #expect(decision.reason == String(repeating: "€", count: 1365) + "…")
    }
  }

  @Test func anOperatorsRequestIsADecisionWithoutTheSubject() throws {
    let event = AuditSamples.event(.accountDeletionRequested)
    let record = AuditSamples.read(
      EventRecord(
        event, requestedBy: "bob", because: "letter of \(AuditSamples.subject.text)", code: { _ in "a code" }), 1, 5)
    let decision = try #require(
      AuditEntry.Decision(event, record.headers, at: AuditEntry.Source(record)))
    #expect(
      decision
        == AuditEntry.Decision(
          .erasureRequested, at: AuditSamples.source(.accountEvents, 1, 5), time: AuditSamples.occurredAt, by: "bob",
          because: "letter of …", letter: nil, id: AuditSamples.id, team: AuditSamples.team,
          audience: AuditSamples.audience))
    let own = AuditSamples.read(EventRecord(event, jws: nil))
    #expect(AuditEntry.Decision(event, own.headers, at: AuditEntry.Source(own)) == nil)
  }
}
