import AccountEvents
import AppleID
import Cryptography
import JSON
import Testing

/// What Apple signed for us, in every form in which it says it.
@Suite struct VerifiedNotificationTests {
  @Test func holdsWhatWasSaidAndHowItWasSigned() throws {
    let jws = Forge.jws()
    let notification = try #require(Forge.verify(Forge.body(jws)).notification)
    #expect(notification.id == EventID(Forge.jti))
    #expect(notification.team == Forge.team && notification.audience == Forge.app)
    #expect(notification.issuedAt == Timestamp(seconds: Forge.issue))
    #expect(notification.signingKey.id == KeyID(Forge.keyID))
    #expect(notification.jws == Array(jws.utf8))
    #expect(notification.events == [.known(try event(.consentRevoked))])
  }

  @Test(
    arguments: [
      (["type": "consent-revoked"], .consentRevoked), (["type": "account-delete"], .accountDelete),
      (["type": "account-deleted"], .accountDelete),
      (
        ["type": "email-enabled", "email": "a@b", "is_private_email": "true"],
        .emailEnabled(Forge.address("a@b"), isPrivate: true)
      ),
      (
        ["type": "email-disabled", "email": "a@b", "is_private_email": "false"],
        .emailDisabled(Forge.address("a@b"), isPrivate: false)
      ),
      (
        ["type": "email-enabled", "email": "a@b", "is_private_email": true],
        .emailEnabled(Forge.address("a@b"), isPrivate: true)
      ),
      (
        ["type": "email-enabled", "email": "a@b", "is_private_email": false],
        .emailEnabled(Forge.address("a@b"), isPrivate: false)
      ),
      (["type": "email-disabled", "email": "é\"\\@b"], .emailDisabled(Forge.address("é\"\\@b"), isPrivate: false)),
      (["future": ["a": [1, .null]], "is_private_email": "perhaps", "email": 5], .consentRevoked),
    ] as [(KeyValuePairs<String, JSONValue?>, AccountEvent.Kind)])
  func readsEachTypeInEachForm(changes: KeyValuePairs<String, JSONValue?>, kind: AccountEvent.Kind) throws {
    let written = Forge.event(changes)
    for events in [
      .string(Forge.text(written)), written, [written], .string(Forge.text([written])), [.string(Forge.text(written))],
    ]
      as [JSONValue]
    {
      let notification = try #require(Forge.verify(claims: Forge.claims(["events": events])).notification)
      #expect(notification.events == [.known(try event(kind))], "\(events)")
    }
  }

  /// Apple sends milliseconds and shows seconds.
  @Test(
    arguments: [
      (1_657_617_063_012, 1_657_617_063_012), (1_657_617_063, 1_657_617_063_000), (0, 0),
      (99_999_999_999, 99_999_999_999_000),
      (100_000_000_000, 100_000_000_000),
    ] as [(Int64, Int64)])
  func tellsSecondsFromMilliseconds(written: Int64, milliseconds: Int64) throws {
    let claims = Forge.claims(["events": .string(Forge.text(Forge.event(["event_time": .integer(written)])))])
    let notification = try #require(Forge.verify(claims: claims).notification)
    switch notification.events[0] {
    case .known(let event): #expect(event.occurredAt.milliseconds == milliseconds)
    case .quarantined(let event): #expect(event.reason == .notYetValid && milliseconds > Forge.now.milliseconds)
    }
  }

  @Test func eachOfSeveralEventsIsJudgedByItself() throws {
    let unknown = Forge.event(["type": "future-type"]), formless: JSONValue = ["type": "consent-revoked"]
    let events: JSONValue = [
      Forge.event(), unknown, .string(Forge.text(Forge.event(["type": "account-delete"]))), formless, 5, "{", "[]",
      .null,
    ]
    let claims = Forge.claims(["events": events])
    for form in [claims, Forge.claims(["events": .string(Forge.text(events))])] {
      let notification = try #require(Forge.verify(claims: form).notification)
      #expect(
        notification.known == [
          try event(.consentRevoked, "\(Forge.jti).0"), try event(.accountDelete, "\(Forge.jti).2"),
        ])
      #expect(notification.quarantined.map(\.id.text) == [1, 3, 4, 5, 6, 7].map { "\(Forge.jti).\($0)" })
      #expect(notification.quarantined.map(\.reason) == [.unknownType] + .init(repeating: .unknownForm, count: 5))
      let kept = notification.quarantined.map { String(decoding: $0.json, as: UTF8.self) }
      #expect(kept == [Forge.text(unknown), Forge.text(formless)] + .init(repeating: Forge.text(form), count: 4))
      #expect(notification.quarantined[0].subject == AppleSubject(Forge.subject))
      #expect(notification.quarantined[1].subject == nil)
    }
  }

  @Test(
    arguments: [
      (["type": "passkey-added"], .unknownType), (["type": ""], .unknownType),
      (["type": "Consent-Revoked"], .unknownType),
      (["type": "unheard-of", "sub": nil, "event_time": nil], .unknownType),
      (["type": "account-deletion-requested"], .unknownType),
      (["type": nil], .unknownForm), (["type": 5], .unknownForm), (["type": .null], .unknownForm),
      (["sub": nil], .unknownForm),
      (["sub": 5], .unknownForm), (["sub": ""], .unknownForm), (["sub": "a b"], .unknownForm),
      (["event_time": nil], .unknownForm),
      (["event_time": "1657617063012"], .unknownForm), (["event_time": -1], .unknownForm),
      (["event_time": 9_007_199_254_740_991], .unknownForm),
      (["type": "email-enabled"], .unknownForm), (["type": "email-enabled", "email": 5], .unknownForm),
      (["type": "email-disabled", "email": "no address"], .unknownForm),
      (["type": "email-disabled", "email": "a@b", "is_private_email": "TRUE"], .unknownForm),
      (["type": "email-disabled", "email": "a@b", "is_private_email": 1], .unknownForm),
      (["event_time": .integer((Forge.issue + 121) * 1000)], .notYetValid),
    ] as [(KeyValuePairs<String, JSONValue?>, QuarantinedEvent.Reason)])
  func keepsAsideWhatItDoesNotUnderstand(
    changes: KeyValuePairs<String, JSONValue?>, reason: QuarantinedEvent.Reason
  ) throws {
    let event = Forge.event(changes)
    for events in [.string(Forge.text(event)), event] as [JSONValue] {
      let notification = try #require(Forge.verify(claims: Forge.claims(["events": events])).notification)
      try #require(notification.events.count == 1)
      let kept = try #require(notification.quarantined.first)
      #expect(kept.reason == reason)
      #expect(kept.id == notification.id && kept.team == Forge.team && kept.audience == Forge.app)
      #expect(kept.issuedAt == notification.issuedAt)
      #expect(String(decoding: kept.json, as: UTF8.self) == Forge.text(event))
    }
  }

  @Test func anEventTimeThatIsNoIntegerIsKeptAside() throws {
    let event = #"{ "type":"consent-revoked","sub":"\#(Forge.subject)","event_time":1.657e12 }"#
    let notification = try #require(Forge.verify(claims: Forge.claims(["events": .string(" \(event)\n")])).notification)
    #expect(notification.quarantined.map(\.reason) == [.unknownForm])
    #expect(notification.quarantined.map { String(decoding: $0.json, as: UTF8.self) } == [event])
  }

  /// Where no event can be told from the claims, all of them are kept.
  @Test(arguments: [
    "", "x", "[]", "{", "null", "5", "\"{}\"", "[[]", "{} {}", #"{"type":"a","type":"a"}"#,
    #"[{"type":"a"},{"type":"a","type":"a"}]"#,
  ])
  func keepsAllClaimsWhereThereIsNoEvent(text: String) throws {
    let claims = Forge.claims(["events": .string(text)])
    let notification = try #require(Forge.verify(claims: claims).notification)
    #expect(notification.events.count == 1)
    let kept = try #require(notification.quarantined.first)
    #expect(kept.reason == .unknownForm && kept.subject == nil && kept.id == notification.id)
    #expect(kept.json == claims.bytes)
  }

  @Test(arguments: [5, true, .null, [], [[]], [[:], []]] as [JSONValue])
  func keepsAllClaimsWhereEventsIsSomethingElse(events: JSONValue) throws {
    let claims = Forge.claims(["events": events])
    let notification = try #require(Forge.verify(claims: claims).notification)
    let kept = try #require(notification.quarantined.last)
    #expect(kept.reason == .unknownForm && kept.json == claims.bytes)
  }

  /// A minute of tolerance on either side, to the second.
  @Test(
    arguments: [
      (-60, nil), (-61, .notYetValid), (-1_000_000, .notYetValid), (0, nil), (86_400, nil), (86_460, nil),
      (86_461, .expired),
      (1_000_000, .expired),
    ] as [(Int64, QuarantinedEvent.Reason?)])
  func keepsAsideWhatComesAtTheWrongTime(seconds: Int64, reason: QuarantinedEvent.Reason?) throws {
    let now = try #require(Timestamp(seconds: Forge.issue + seconds))
    let events: JSONValue = [Forge.event(), Forge.event(["type": "future-type"])]
    let notification = try #require(Forge.verify(claims: Forge.claims(["events": events]), at: now).notification)
    #expect(notification.quarantined.map(\.reason) == (reason.map { [$0] } ?? []) + [.unknownType])
    #expect(notification.known.count == (reason == nil ? 1 : 0))
    if reason != nil { #expect(notification.quarantined[0].subject == AppleSubject(Forge.subject)) }
  }

  @Test(
    arguments: [
      ("com.example.app", Forge.app), ("com.example.web", Forge.web), (.array(["com.example.app"]), Forge.app),
      (.array(["com.example.unknown", "a b", "com.example.web", "com.example.app"]), Forge.web),
    ] as [(JSONValue, ClientID)])
  func isForTheFirstAudienceThatIsOurs(audience: JSONValue, expected: ClientID) throws {
    let notification = try #require(Forge.verify(claims: Forge.claims(["aud": audience])).notification)
    #expect(notification.audience == expected && notification.team == Forge.team)
    #expect(notification.known.map(\.audience) == [expected])
  }

  @Test func theTeamIsThatOfTheAudience() throws {
    let notification = try #require(Forge.verify(claims: Forge.claims(["aud": "org.example.other"])).notification)
    #expect(notification.team == Forge.otherTeam)
    #expect(notification.known.map(\.team) == [Forge.otherTeam])
  }

  @Test func furtherClaimsAreNoReason() throws {
    let claims = Forge.claims(["txn": "x", "future": ["sub": [[[[[[[1]]]]]]]], "toe": 5])
    #expect(try #require(Forge.verify(claims: claims).notification).known.count == 1)
  }

  @Test func everyEventOfTheLargestNotificationIsTold() throws {
    let events = [JSONValue](repeating: ["type": "x"], count: 800)
    let claims = Forge.claims(["events": .array(events)])
    let notification = try #require(Forge.verify(claims: claims).notification)
    #expect(notification.events.count == 800)
    #expect(Set(notification.quarantined.map(\.id)).count == 800)
  }

  private func event(_ kind: AccountEvent.Kind, _ id: String = Forge.jti) throws -> AccountEvent {
    AccountEvent(
      id: try #require(EventID(id)), team: Forge.team, audience: Forge.app,
      subject: try #require(AppleSubject(Forge.subject)),
      kind: kind, occurredAt: try #require(Timestamp(milliseconds: (Forge.issue - 29) * 1000 + 12)),
      issuedAt: try #require(Timestamp(seconds: Forge.issue)))
  }
}
