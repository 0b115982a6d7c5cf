import AccountEvents
import AppleID
import Cryptography
import JSON
import Testing

/// What Apple signed proves an event, whenever somebody asks.
@Suite struct SigningKeyRingTests {
  private static let issuer = "https://appleid.apple.com"

  private func key(_ key: RSAPrivateKey) throws -> AppleSigningKey {
    let (id, modulus) = (try #require(named), Base64URL.encode(try key.modulus))
    return try #require(AppleSigningKey(id: id, modulus: modulus, firstSeen: Forge.now))
  }

  private func ring() throws -> SigningKeyRing {
    var ring = SigningKeyRing()
    ring.add(try key(Forge.key))
    return ring
  }

  /// The event of `Forge.claims()`, changed.
  private func event(
    id: String = Forge.jti, team: TeamID = Forge.team, audience: ClientID = Forge.app, subject: String = Forge.subject,
    kind: AccountEvent.Kind = .consentRevoked, occurredAt: Int64 = (Forge.issue - 29) * 1000 + 12,
    issuedAt: Int64 = Forge.issue
  ) throws -> AccountEvent {
    AccountEvent(
      id: try #require(EventID(id)), team: team, audience: audience, subject: try #require(AppleSubject(subject)),
      kind: kind, occurredAt: try #require(Timestamp(milliseconds: occurredAt)),
      issuedAt: try #require(Timestamp(seconds: issuedAt)))
  }

  private func judge(
    _ jws: String, _ event: AccountEvent, with ring: SigningKeyRing
  ) -> SigningKeyRing.Finding {
    ring.judge(Array(jws.utf8), provingThat: event, by: Self.issuer)
  }

  private let named = KeyID(Forge.keyID)

  @Test func provesWhatAppleSigned() throws {
    let named = try #require(named)
    #expect(judge(Forge.jws(), try event(), with: try ring()) == .proven(named))
    // To which team an app belongs is not Apple's to say, and for several apps it may have been sent.
    #expect(judge(Forge.jws(), try event(team: Forge.otherTeam), with: try ring()) == .proven(named))
    let several = Forge.claims(["aud": ["org.example.unknown", "com.example.app"]])
    #expect(judge(Forge.jws(claims: several), try event(), with: try ring()) == .proven(named))
  }

  @Test func provesEachOfSeveralEvents() throws {
    let events: JSONValue = [Forge.event(), Forge.event(["type": "account-delete"])]
    let jws = Forge.jws(claims: Forge.claims(["events": .string(Forge.text(events))]))
    let named = try #require(named)
    #expect(judge(jws, try event(id: Forge.jti + ".0"), with: try ring()) == .proven(named))
    #expect(judge(jws, try event(id: Forge.jti + ".1", kind: .accountDelete), with: try ring()) == .proven(named))
    #expect(judge(jws, try event(id: Forge.jti + ".1"), with: try ring()) == .unproven(named))
    #expect(judge(jws, try event(), with: try ring()) == .unproven(named))
  }

  @Test func whatAppleSignedProvesNoOtherEvent() throws {
    let ring = try ring()
    for other in [
      try event(id: "another"), try event(audience: Forge.web), try event(subject: "another"),
      try event(kind: .accountDelete), try event(occurredAt: (Forge.issue - 29) * 1000 + 13),
      try event(issuedAt: Forge.issue + 1),
    ] {
      #expect(judge(Forge.jws(), other, with: ring) == .unproven(named))
    }
  }

  @Test func nothingElseProvesAnEvent() throws {
    let (ring, event) = (try ring(), try event())
    #expect(judge(Forge.jws(key: Forge.stranger), event, with: ring) == .unproven(named))
    #expect(
      judge(Forge.jws(claims: Forge.claims(["iss": "https://example.com"])), event, with: ring) == .unproven(named))
    #expect(judge(Forge.jws(claims: Forge.claims(["sub": "x"])), event, with: ring) == .unproven(named))
    for junk in ["", "..", "a.b", String(repeating: "x", count: 20_000)] {
      #expect(judge(junk, event, with: ring) == .unproven(nil))
    }
    let unknown = Forge.jws(header: ["kid": "another", "alg": "RS256"])
    let (known, another) = (try #require(named), try #require(KeyID("another")))
    #expect(judge(unknown, event, with: ring) == .unknownKey(another))
    #expect(judge(Forge.jws(), event, with: SigningKeyRing()) == .unknownKey(known))
  }

  @Test func twoKeysOfOneNameAreBothTried() throws {
    var ring = try ring()
    ring.add(try key(Forge.stranger))
    ring.add(try key(Forge.stranger))
    #expect(ring.count == 2)
    let named = try #require(named)
    #expect(judge(Forge.jws(), try event(), with: ring) == .proven(named))
    #expect(judge(Forge.jws(key: Forge.stranger), try event(), with: ring) == .proven(named))
  }
}
