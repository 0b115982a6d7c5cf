import AccountEvents
import AccountServices
import AppleID
import Cryptography
import Kafka
import Testing

/// Which entries are made of a record.
@Suite struct RecordTranslationTests {
  private let translation = RecordTranslation(hash: { _ in AuditSamples.account }, issuer: AuditForge.issuer)

  private func entries(
    _ record: EventRecord, on topic: AuditedTopic = .events, keys: SigningKeyRing? = nil
  ) throws -> RecordTranslation.Result {
    translation.entries(
      of: AuditSamples.read(record, 3, 17), on: topic, keys: try keys ?? AuditForge.ring(), at: AuditSamples.issuedAt)
  }

  private func obligation(
    _ event: AccountEvent, _ jws: [UInt8]?, _ signature: AuditEntry.Obligation.Signature, key: String? = "fh6Bs8C"
  ) -> AuditEntry {
    .obligation(
      AuditEntry.Obligation(
        event, at: AuditSamples.source(.accountEvents, 3, 17), account: AuditSamples.account,
        jws: jws.map { SHA256.digest(of: $0) }, keyID: key.flatMap { KeyID($0) }, signature: signature))
  }

  private func gap(on topic: Topic) -> AuditEntry {
    .gap(
      AuditEntry.Gap(.unreadable, topic: topic.name, partition: 3, from: 17, to: 18, at: AuditSamples.loggedAt))
  }

  @Test func anEventThatAppleSignedIsAnObligation() throws {
    let event = AuditSamples.event()
    let jws = try AuditForge.jws(event)
    #expect(try entries(EventRecord(event, jws: jws)) == .entries([obligation(event, jws, .verified)]))
  }

  @Test func anEventWithoutASignatureIsOneToo() throws {
    let event = AuditSamples.event(.accountDeletionRequested)
    #expect(try entries(EventRecord(event, jws: nil)) == .entries([obligation(event, nil, .none, key: nil)]))
  }

  @Test func anOperatorsRequestIsAnObligationAndADecision() throws {
    let event = AuditSamples.event(.accountDeletionRequested)
    let record = EventRecord(event, requestedBy: "bob", because: "a letter", code: { _ in "a code" })
    let decision = AuditEntry.Decision(
      .erasureRequested, at: AuditSamples.source(.accountEvents, 3, 17), time: event.occurredAt, by: "bob",
      because: "a letter", letter: nil, id: event.id, team: event.team, audience: event.audience)
    #expect(try entries(record) == .entries([obligation(event, nil, .none, key: nil), .decision(decision)]))
  }

  @Test func whatAppleDidNotSignIsRefused() throws {
    let event = AuditSamples.event()
    let other = try AuditForge.jws(AuditSamples.event(.consentRevoked))
    #expect(
      try entries(EventRecord(event, jws: other))
        == .awaitsKey(entries: [obligation(event, other, .refused)], isKeyUnknown: false))
    let forged = try AuditForge.jws(event, by: AuditForge.stranger)
    #expect(
      try entries(EventRecord(event, jws: forged))
        == .awaitsKey(entries: [obligation(event, forged, .refused)], isKeyUnknown: false))
    let junk = Array("junk".utf8)
    #expect(
      try entries(EventRecord(event, jws: junk)) == .entries([obligation(event, junk, .refused, key: nil)]))
  }

  @Test func aKeyThatNobodyKnowsIsWaitedFor() throws {
    let event = AuditSamples.event()
    let jws = try AuditForge.jws(event, named: "another")
    #expect(
      try entries(EventRecord(event, jws: jws))
        == .awaitsKey(entries: [obligation(event, jws, .unknownKey, key: "another")], isKeyUnknown: true))
  }

  @Test(arguments: ["", "{}", #"{"type":"account-moved"}"#, "\u{0}"])
  func whatNobodyUnderstandsIsAGapOfOneRecord(_ value: String) throws {
    for (topic, audited) in [(Topic.accountEvents, AuditedTopic.events), (.outcomes, .outcomes)] {
      let record = EventRecord(topic: topic, key: nil, value: Array(value.utf8), headers: [])
      #expect(try entries(record, on: audited) == .entries([gap(on: topic)]))
    }
  }

  @Test func anOutcomeIsAnEffect() throws {
    let record = EventRecord(AuditSamples.outcome())
    let effect = try #require(AuditEntry.Effect(AuditSamples.read(record, 3, 17)))
    #expect(try entries(record, on: .outcomes) == .entries([.effect(effect)]))
  }

  @Test func aLetterIsNoEntry() throws {
    let letter = QuarantinedEvent(
      id: AuditSamples.id, team: AuditSamples.team, audience: AuditSamples.audience, subject: AuditSamples.subject,
      issuedAt: AuditSamples.issuedAt, reason: .expired, json: Array("{}".utf8))
    #expect(
      try entries(EventRecord(letter, jws: AuditSamples.jws), on: .letters(.quarantine)) == .entries([]))
  }
}
