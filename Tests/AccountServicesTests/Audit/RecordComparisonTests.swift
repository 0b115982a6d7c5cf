// swift-format-ignore-file: NeverForceUnwrap, NeverUseForceTry

import AccountEvents
import AccountServices
import AppleID
import Cryptography
import Kafka
import Testing

/// What the log says of events, beside their records.
@Suite struct RecordComparisonTests {
  private static let issuer = "https://appleid.apple.com"
  private static let held: [Int32: Range<Int64>] = [0: 10..<100]
  private static let keys = [try! RSAPrivateKey(bitCount: 2048), try! RSAPrivateKey(bitCount: 2048)]

  private func event(_ id: String) throws -> AccountEvent {
    AuditSamples.event(.accountDelete, id: try #require(EventID(id)))
  }

  /// A notification that contains the event.
  private func jws(_ event: AccountEvent, by key: Int) throws -> [UInt8] {
    let inner =
      #"{"type":"account-delete","sub":"\#(event.subject.text)","event_time":\#(event.occurredAt.milliseconds)}"#
    let issue = event.issuedAt.milliseconds / 1000
    let claims =
      #"{"iss":"\#(Self.issuer)","aud":"\#(event.audience)","exp":\#(issue + 86_400),"iat":\#(issue),"#
      + #""jti":"\#(event.id)","events":\#(inner)}"#
    let parts = [#"{"kid":"key-\#(key)","alg":"RS256"}"#, claims].map { Base64URL.encode(Array($0.utf8)) }
    let signed = parts.joined(separator: ".")
    return Array("\(signed).\(Base64URL.encode(try Self.keys[key].signRS256(Array(signed.utf8))))".utf8)
  }

  private func comparison(knowing numbers: Range<Int>) throws -> RecordComparison {
    var ring = SigningKeyRing()
    for number in numbers {
      let (id, modulus) = (try #require(KeyID("key-\(number)")), Base64URL.encode(try Self.keys[number].modulus))
      ring.add(try #require(AppleSigningKey(id: id, modulus: modulus, firstSeen: AuditSamples.issuedAt)))
    }
    return RecordComparison(of: Self.held, ring, issuedBy: Self.issuer)
  }

  private func entry(_ event: AccountEvent, _ jws: [UInt8], _ offset: Int64) -> AuditEntry {
    .obligation(
      AuditEntry.Obligation(
        event, at: AuditSamples.source(.accountEvents, 0, offset), account: AuditSamples.account,
        jws: SHA256.digest(of: jws), keyID: KeyID("key-0"), signature: .verified))
  }

  private func record(_ event: AccountEvent, _ jws: [UInt8], _ offset: Int64) -> ConsumedRecord {
    AuditSamples.read(EventRecord(event, jws: jws), 0, offset)
  }

  /// Apple's key was rotated between the two.
  @Test func whatFitsIsVerifiedOnceMoreOverRotationsOfApplesKey() throws {
    var comparison = try comparison(knowing: 0..<2)
    let events = [try event("a"), try event("b")]
    for (number, event) in events.enumerated() {
      comparison.take(entry(event, try jws(event, by: number), 10 + Int64(number)), at: UInt64(number))
    }
    for (number, event) in events.enumerated() {
      #expect(comparison.compare(record(event, try jws(event, by: number), 10 + Int64(number))) == nil)
    }
    #expect(comparison.compared == 2 && comparison.signed == 2 && !comparison.hasSuspects)
  }

  @Test func whatDoesNotFitIsNamed() throws {
    let event = try event("a")
    let own = try jws(event, by: 0)
    var other = try comparison(knowing: 0..<1)
    other.take(entry(event, [1], 10), at: 7)
    #expect(other.compare(record(event, own, 10))?.kind == .otherNotification)

    var keyless = try comparison(knowing: 1..<2)
    keyless.take(entry(event, own, 10), at: 7)
    let missing = keyless.compare(record(event, own, 10))
    #expect(missing?.kind == .keyIsMissing && missing?.entry == 7 && missing?.record.offset == 10)

    var forged = try comparison(knowing: 0..<1)
    let broken = Array(own.dropLast(4)) + Array("AAAA".utf8)
    forged.take(entry(event, broken, 10), at: 7)
    #expect(forged.compare(record(event, broken, 10))?.kind == .signatureDoesNotHold)

    #expect(forged.compare(junk(at: 10))?.kind == .unreadable)
  }

  private func junk(at offset: Int64) -> ConsumedRecord {
    ConsumedRecord(
      topic: Topic.accountEvents.name, position: KafkaPosition(partition: 0, offset: offset), key: nil, value: [1],
      headers: [], timestamp: nil)
  }

  /// A record that became no event once its obligation was logged: a later entry of the log does not excuse it.
  @Test(arguments: [true, false]) func nothingMakesTheRecordOfAnObligationUnreadable(isGapFirst: Bool) throws {
    var comparison = try comparison(knowing: 0..<1)
    let event = try event("a")
    let gap = AuditEntry.gap(
      AuditEntry.Gap(
        .unreadable, topic: Topic.accountEvents.name, partition: 0, from: 12, to: 13, at: AuditSamples.loggedAt))
    let obligation = entry(event, try jws(event, by: 0), 12)
    let entries = isGapFirst ? [gap, obligation] : [obligation, gap]
    for index in entries.indices { comparison.take(entries[index], at: UInt64(index)) }
    #expect(comparison.compare(junk(at: 12))?.kind == .unreadable)
  }

  /// The log has seen it, and could make nothing of it: that is what its entry says.
  @Test func aRecordThatIsNoEventIsNoMisfitWhereTheLogSaysSo() throws {
    var comparison = try comparison(knowing: 0..<1)
    let translation = RecordTranslation(hash: { _ in AuditSamples.account }, issuer: Self.issuer)
    let noted = translation.entries(
      of: junk(at: 10), on: .events, keys: SigningKeyRing(), at: AuditSamples.loggedAt)
    guard case .entries(let entries) = noted, entries.count == 1 else {
      Issue.record("\(noted)")
      return
    }
    comparison.take(entries[0], at: 0)
    let event = try event("a")
    comparison.take(entry(event, try jws(event, by: 0), 12), at: 1)
    #expect(comparison.compare(junk(at: 10)) == nil)
    #expect(comparison.unreadable == 1 && comparison.compared == 1)
    // Another one, of which the log says nothing, and the record of an obligation.
    for offset in [11, 12] as [Int64] {
      let finding = comparison.compare(junk(at: offset))
      #expect(finding?.kind == .unreadable && finding?.record.offset == offset)
    }
    // What the log says of other topics counts for nothing here.
    var other = try self.comparison(knowing: 0..<1)
    other.take(
      .gap(
        AuditEntry.Gap(
          .unreadable, topic: Topic.outcomes.name, partition: 0, from: 10, to: 11, at: AuditSamples.loggedAt)), at: 0)
    other.take(entry(event, try jws(event, by: 0), 12), at: 1)
    #expect(other.compare(junk(at: 10))?.kind == .unreadable)
  }

  @Test func aRecordThatTheLogHasPassedOverIsNamed() throws {
    var comparison = try comparison(knowing: 0..<1)
    let (logged, passed, young) = (try event("a"), try event("b"), try event("c"))
    comparison.take(entry(logged, try jws(logged, by: 0), 11), at: 0)
    #expect(comparison.compare(record(passed, try jws(passed, by: 0), 10)) == nil)
    #expect(comparison.compare(record(young, try jws(young, by: 0), 12)) == nil)
    #expect(comparison.younger == 1 && comparison.hasSuspects)
    comparison.clear(by: entry(logged, [], 11))
    #expect(comparison.notLogged.map(\.kind) == [.notLogged] && comparison.notLogged.map(\.record.offset) == [10])
  }

  /// The record that the log came to first is gone; the same event stands on the topic once more.
  @Test func aSecondRecordOfAnOldEventIsNotPassedOver() throws {
    var comparison = try comparison(knowing: 0..<1)
    let (old, new) = (try event("a"), try event("b"))
    let entries = [entry(old, try jws(old, by: 0), 3), entry(new, try jws(new, by: 0), 20)]
    for (index, entry) in entries.enumerated() { comparison.take(entry, at: UInt64(index)) }
    #expect(comparison.compare(record(old, try jws(old, by: 0), 15)) == nil && comparison.hasSuspects)
    for entry in entries { comparison.clear(by: entry) }
    #expect(!comparison.hasSuspects && comparison.notLogged.isEmpty)
  }
}
