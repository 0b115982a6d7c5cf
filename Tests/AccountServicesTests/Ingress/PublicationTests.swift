import AccountEvents
import AccountServices
import AppleSimulator
import EventLoop
import HTTPClient
import JSON
import Testing

/// What stands on the log once a notification was answered with 200.
@Loop @Suite struct PublicationTests {
  @Test func anEventStandsThereWithAllThatItsReadersNeed() async throws {
    try await IngressRig.run { rig in
      let sent = try rig.sign(.emailDisabled)
      #expect(try await rig.post(sent.body).status == 200)
      let record = try #require(rig.log.records.first)
      let (jti, subject) = (sent.notification.jti, IngressRig.person.subject)
      #expect(record.topic.name == "apple.account-events.v1")
      #expect(record.key == Array("A1B2C3D4E5/\(subject)".utf8))
      #expect(
        record.headers.map { "\($0.name): \(String(decoding: $0.value, as: UTF8.self))" } == [
          "ce_specversion: 1.0", "ce_id: \(jti)", "ce_source: https://appleid.apple.com",
          "ce_type: com.apple.siwa.email-disabled.v1", "ce_subject: \(subject)",
          "ce_time: \(sent.notification.occurredAt)", "ce_partitionkey: A1B2C3D4E5/\(subject)", "ce_team: A1B2C3D4E5",
          "ce_audience: com.example.app", "content-type: application/json", "apple-jws: \(sent.jws)",
        ])
      let value: JSONValue = [
        "id": .string(jti), "type": "email-disabled", "team": "A1B2C3D4E5", "audience": "com.example.app",
        "sub": .string(subject), "event_time": .integer(sent.notification.occurredAt.milliseconds),
        "issued_at": .integer(sent.notification.issuedAt.milliseconds), "email": .string(IngressRig.person.address),
        "is_private_email": true,
      ]
      #expect(record.value == value.bytes)
    }
  }

  /// Apple sends one event at a time; its documents show arrays.
  private static func mixed() -> JSONValue {
    let subject = JSONValue.string(IngressRig.person.subject)
    let time = JSONValue.integer(IngressRig.now.milliseconds - 20_000)
    return [
      ["type": "consent-revoked", "sub": subject, "event_time": time],
      ["type": "account-merged", "sub": subject, "event_time": time],
      ["type": "account-deleted", "sub": subject, "event_time": time],
    ]
  }

  @Test func eachOfSeveralEventsGoesWhereItBelongs() async throws {
    try await IngressRig.run { rig in
      let response = try await rig.post(rig.body(claims: rig.claims(jti: "several", events: Self.mixed())))
      #expect(response.status == 200)
      let expected: [(Topic, String, String)] = [
        (.accountEvents, "several.0", "com.apple.siwa.consent-revoked.v1"),
        (.quarantine, "several.1", "com.apple.siwa.quarantined.v1"),
        (.accountEvents, "several.2", "com.apple.siwa.account-delete.v1"),
      ]
      #expect(rig.log.records.map(\.topic) == expected.map(\.0))
      #expect(rig.log.records.map { $0.text(of: "ce_id") } == expected.map(\.1))
      #expect(rig.log.records.map { $0.text(of: "ce_type") } == expected.map(\.2))
      let account = "A1B2C3D4E5/\(IngressRig.person.subject)"
      #expect(
        rig.log.records.map(\.key)
          == [account, "A1B2C3D4E5 com.example.app several.1", account].map { Array($0.utf8) })
      #expect(try await rig.metric("siwa_ingress_notifications_accepted_total") == 1)
      #expect(try await rig.metric("siwa_ingress_events_quarantined_total{reason=\"unknown-type\"}") == 1)
    }
  }

  /// The topic is compacted: what has a key of its own stays until somebody decides about it.
  @Test func whatIsKeptAsideIsReplacedByNothingElse() async throws {
    try await IngressRig.run { rig in
      let subject = JSONValue.string(IngressRig.person.subject)
      let unknown: JSONValue = ["type": "account-merged", "sub": subject]
      for (audience, jti) in [(IngressRig.app, "one"), (IngressRig.web, "one"), (IngressRig.app, "two")] {
        let claims = rig.claims(audience: .string(audience), jti: jti, events: [unknown, unknown])
        let answer = try await rig.post(rig.body(claims: claims))
        #expect(answer.status == 200)
      }
      let keys = rig.log.records.filter { $0.topic == .quarantine }.map(\.key)
      #expect(Set(keys).count == keys.count && !keys.contains(nil))
    }
  }

  @Test func wherePartOfANotificationCannotBeKeptAllOfItIsAskedForAgain() async throws {
    try await IngressRig.run(spoolSize: 1) { rig in
      rig.log.fault = { $0.topic == .quarantine ? .sample(.unavailable) : nil }
      let body = try rig.body(claims: rig.claims(jti: "several", events: Self.mixed()))
      #expect(try await rig.post(body).status == 503)
      #expect(try await rig.metric("siwa_ingress_notifications_accepted_total") == 0)
      rig.log.fault = { _ in nil }
      #expect(try await rig.post(body).status == 200)
      #expect(rig.log.records.map { $0.text(of: "ce_id") } == ["several.0", "several.1", "several.2"])
    }
  }

  /// Our clock is days behind or ahead: what Apple sends goes into quarantine, and Apple is told 200. Once the clock is
  /// right, the same notification is published; after that it is no second record, whatever the clock says.
  @Test(arguments: [-2, 2])
  func whatAWrongClockPutAsideIsPublishedOnceItComesAgain(days: Int) async throws {
    try await IngressRig.run { rig in
      let sent = try rig.sign(.accountDelete)
      rig.clock.turn(by: .seconds(days * 86_400))
      for _ in 0..<2 { #expect(try await rig.post(sent.body).status == 200) }
      #expect(rig.log.records.map(\.topic) == [.quarantine])
      rig.clock.turn(by: .seconds(-days * 86_400))
      for _ in 0..<2 { #expect(try await rig.post(sent.body).status == 200) }
      #expect(rig.log.records.map(\.topic) == [.quarantine, .accountEvents])
      rig.clock.turn(by: .seconds(-2 * 86_400))
      #expect(try await rig.post(sent.body).status == 200)
      #expect(rig.log.records.count == 2)
    }
  }

  @Test func oneIdForTwoTeamsIsTwoEvents() async throws {
    try await IngressRig.run { rig in
      let event: JSONValue = [
        "type": "consent-revoked", "sub": .string(IngressRig.person.subject),
        "event_time": .integer(IngressRig.now.milliseconds - 20_000),
      ]
      for audience in [IngressRig.app, IngressRig.otherApp, IngressRig.app] {
        let claims = rig.claims(audience: .string(audience), jti: "one", events: event)
        let status = try await rig.post(rig.body(claims: claims)).status
        #expect(status == 200)
      }
      #expect(rig.log.records.map { $0.text(of: "ce_team") } == ["A1B2C3D4E5", "Z9Y8X7W6V5"])
    }
  }

  @Test func whatCannotBeTakenApartIsKeptAsAWhole() async throws {
    try await IngressRig.run { rig in
      let claims = rig.claims(events: "no JSON at all")
      #expect(try await rig.post(rig.body(claims: claims)).status == 200)
      let record = try #require(rig.log.records.first)
      #expect(record.topic == .quarantine)
      #expect(record.key == Array("A1B2C3D4E5 com.example.app S25cB0PbHs6y97gYYmgydQ".utf8))
      #expect(record.value == claims.bytes)
    }
  }
}

extension EventRecord {
  /// The value of a header; nil where there is none of that name.
  func text(of header: String) -> String? {
    headers.first { $0.name == header }.map { String(decoding: $0.value, as: UTF8.self) }
  }
}
