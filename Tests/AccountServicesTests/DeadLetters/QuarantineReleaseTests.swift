import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import EventLoop
import HTTPClient
import JSON
import Kafka
import Testing

/// Which quarantined events are published after all.
@Loop @Suite struct QuarantineReleaseTests {
  private static func verifier(_ teams: [ClientID: TeamID] = IngressRig.teams) -> NotificationVerifier {
    NotificationVerifier(issuer: AppleNotification.appleIssuer, teams: teams, clockTolerance: .seconds(60))
  }

  /// What the ingress quarantines of a notification with a fault, and what is on the topic of signing keys then.
  private func quarantined(_ fault: Fault) async throws -> (record: EventRecord, keys: [KeyID: AppleSigningKey]) {
    var standing: (EventRecord, [KeyID: AppleSigningKey])?
    try await IngressRig.run { rig in
      #expect(try await rig.post(rig.sign(.emailDisabled, fault).body).status == 200)
      let keys = try rig.log.signingKeys.map { try AppleSigningKey(decoding: $0.record.value) }
      standing = (try #require(rig.log.records.first), Dictionary(keys.map { ($0.id, $0) }) { $1 })
    }
    return try #require(standing)
  }

  private func read(_ record: EventRecord, changing header: String? = nil, to value: String? = nil) -> ConsumedRecord {
    let headers = record.headers.compactMap { old in
      guard old.name == header else { return KafkaHeader(old.name, old.value) }
      return value.map { KafkaHeader(old.name, $0) }
    }
    return ConsumedRecord(
      topic: record.topic.name, position: KafkaPosition(partition: 0, offset: 0), key: record.key, value: record.value,
      headers: headers, timestamp: nil)
  }

  private func words(_ verdict: QuarantineRelease.Verdict) -> String {
    switch verdict {
    case .publish(let record): "published on \(record.topic)"
    case .refuse(let words): words
    }
  }

  @Test func whatCameTooLateIsPublishedAsItWouldHaveBeenInTime() async throws {
    let (record, keys) = try await quarantined(.expired)
    #expect(record.topic == .quarantine && record.text(of: "quarantine-reason") == "expired")
    guard
      case .publish(let event) = QuarantineRelease(Self.verifier(), keys: keys).judge(read(record), at: IngressRig.now)
    else {
      Issue.record("it is refused")
      return
    }
    // The ingress's own verifier, when Apple signed it.
    let jws = try #require(record.headers.last { $0.name == EventRecord.signatureHeader }).value
    let members = keys.values.map { key -> JSONValue in
      ["kty": "RSA", "kid": .string(key.id.text), "use": "sig", "alg": "RS256", "n": .string(key.modulus), "e": "AQAB"]
    }
    let set = (["keys": .array(members)] as JSONValue).bytes
    let body = (["payload": .string(String(decoding: jws, as: UTF8.self))] as JSONValue).bytes
    let verdict = try unsafe Self.verifier().verify(
      body.span.bytes, at: IngressRig.now - .seconds(2 * 86_400),
      keys: AppleKeySet(reading: set.span.bytes, at: IngressRig.now, after: .none))
    guard case .verified(let notification) = verdict, case .known(let known) = notification.events[0] else {
      Issue.record("\(verdict)")
      return
    }
    #expect(event == EventRecord(known, jws: jws))
  }

  @Test(arguments: [
    (Fault.unknownType, "this version does not know its type either"),
    (.eventsNumber, "this version does not know its form either"),
    (.eventWithoutSubject, "this version does not know its form either"),
    (.fromTheFuture, "its time still lies ahead of this machine's clock"),
    (.eventFromTheFuture, "its time still lies ahead of this machine's clock"),
  ])
  func whatStillCannotBeActedOnStays(_ fault: Fault, _ reason: String) async throws {
    let (record, keys) = try await quarantined(fault)
    #expect(words(QuarantineRelease(Self.verifier(), keys: keys).judge(read(record), at: IngressRig.now)) == reason)
  }

  @Test func whatWasAheadOfAClockThatWasBehindIsPublishedOnceTheClockIsRight() async throws {
    let (record, keys) = try await quarantined(.fromTheFuture)
    let later = IngressRig.now + .seconds(86_400 * 365)
    let verdict = QuarantineRelease(Self.verifier(), keys: keys).judge(read(record), at: later)
    #expect(words(verdict) == "published on apple.account-events.v1")
  }

  @Test func onlyWhatAppleSignedForUsIsPublished() async throws {
    let (record, keys) = try await quarantined(.expired)
    let release = QuarantineRelease(Self.verifier(), keys: keys)
    func judge(_ release: QuarantineRelease, _ record: ConsumedRecord) -> String {
      words(release.judge(record, at: IngressRig.now))
    }
    let jws = try #require(record.text(of: "apple-jws"))
    let parts = jws.split(separator: ".").map(String.init)
    let forged = [parts[0], parts[1], String(parts[2].reversed())].joined(separator: ".")
    #expect(
      [
        "The signature does not verify with the key that the header names.",
        "A part of the JWS is empty or not strict base64url without padding.",
      ].contains(judge(release, read(record, changing: "apple-jws", to: forged))))
    #expect(
      judge(release, read(record, changing: "apple-jws", to: nil)) == "it does not hold what Apple signed")
    #expect(
      judge(release, read(record, changing: "ce_id", to: "another")) == "what Apple signed does not hold this event")
    #expect(
      judge(QuarantineRelease(Self.verifier(), keys: [:]), read(record)).hasSuffix("is not on apple.signing-keys.v1"))
    #expect(
      judge(QuarantineRelease(Self.verifier([:]), keys: keys), read(record))
        == "No audience is an app of a configured team.")
    let (app, other) = try (#require(ClientID(IngressRig.app)), #require(TeamID("Z9Y8X7W6V5")))
    #expect(
      judge(QuarantineRelease(Self.verifier([app: other]), keys: keys), read(record))
        == "by the configuration of today it is for com.example.app of the team Z9Y8X7W6V5")
  }
}
