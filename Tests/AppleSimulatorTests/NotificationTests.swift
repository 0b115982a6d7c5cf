import AccountEvents
import AppleSimulator
import Cryptography
import Foundation
import TestSupport
import Testing

@Suite struct NotificationTests {
  static let key = SigningKey.forTests("eXaunmL")
  static let other = SigningKey.forTests("other")

  static func signed(_ type: NotificationType, _ faults: [Fault] = []) throws -> SignedNotification {
    let issuedAt = try #require(Timestamp(seconds: 1_657_617_092))
    let notification = AppleNotification(
      type: type, person: Person(named: "Ada"), audience: "com.example.app", jti: "S25cB0PbHs6y97gYYmgydQ",
      occurredAt: issuedAt - .milliseconds(28_988), issuedAt: issuedAt, issuer: AppleNotification.appleIssuer,
      faults: faults)
    return try SignedNotification(notification, by: key, forger: other.privateKey)
  }

  /// The header and the claims of what Apple itself signed, written by us from its parts, are the same bytes.
  @Test func isByteForByteWhatAppleSigns() throws {
    #expect(Authentic.notifications.count == 3)
    for theirs in Authentic.notifications {
      let parts = theirs.jws.split(separator: ".")
      let header = try #require(try object(parts[0]) as? [String: String])
      let claims = try object(parts[1])
      let event = try #require(
        try JSONSerialization.jsonObject(with: Data((claims["events"] as? String ?? "").utf8)) as? [String: Any])
      var person = Person(named: try #require(event["sub"] as? String))
      if let address = event["email"] as? String { person.address = address }
      let notification = AppleNotification(
        type: try #require((event["type"] as? String).flatMap(NotificationType.init(rawValue:))),
        person: person,
        audience: try #require(claims["aud"] as? String),
        jti: try #require(claims["jti"] as? String),
        occurredAt: try #require((event["event_time"] as? Int64).flatMap(Timestamp.init(milliseconds:))),
        issuedAt: try #require((claims["iat"] as? Int64).flatMap(Timestamp.init(seconds:))),
        issuer: AppleNotification.appleIssuer, faults: [])
      let key = SigningKey(kid: try #require(header["kid"]), key: Self.key.privateKey)
      let ours = try SignedNotification(notification, by: key, forger: Self.other.privateKey)
      #expect(ours.jws.split(separator: ".").prefix(2) == parts.prefix(2))
    }
  }

  @Test(arguments: NotificationType.allCases)
  func isSignedAndPostedAsApplePostsIt(_ type: NotificationType) throws {
    let signed = try Self.signed(type)
    #expect(String(decoding: signed.body, as: UTF8.self) == #"{"payload":"\#(signed.jws)"}"#)
    #expect(signed.body.count < 1024)
    #expect(try isGenuine(signed.jws))
    let event = try #require(try object(signed.jws.split(separator: ".")[1])["events"] as? String)
    let email = #","email":"\#(Person(named: "Ada").address)","is_private_email":"true""#
    #expect(
      event
        == #"{"type":"\#(type.rawValue)","sub":"\#(Person(named: "Ada").subject)","event_time":1657617063012\#(type.rawValue.hasPrefix("email") ? email : "")}"#
    )
  }

  static let withoutGenuineSignature: Set<Fault> = [
    .forgedSignature, .changedClaims, .keyInHeader, .algorithmNone, .algorithmHS256, .paddedBase64, .twoParts,
  ]

  /// What a fault spoils is that, and nothing else: most faults are under a signature that holds.
  @Test(arguments: Fault.allCases)
  func breaksTheSignatureOnlyWhereTheFaultIsThere(_ fault: Fault) throws {
    let faultless = try Self.signed(.emailDisabled)
    let faulty = try Self.signed(.emailDisabled, [fault])
    #expect(faulty.body != faultless.body)
    #expect(try isGenuine(faulty.jws) == !Self.withoutGenuineSignature.contains(fault))
    #expect(!fault.summary.isEmpty)
  }

  @Test func embedsTheKeyOfItsForger() throws {
    let signed = try Self.signed(.consentRevoked, [.keyInHeader])
    let jwk = try #require(try object(signed.jws.split(separator: ".")[0])["jwk"] as? [String: String])
    #expect(jwk["n"] == Base64URL.encode(try Self.other.privateKey.modulus))
    #expect(try isGenuine(signed.jws, Self.other.privateKey))
  }

  /// What each form of `events` holds, when it is unpacked.
  static let forms: [(Fault, @Sendable (Any?) throws -> Any?)] = [
    (.eventsObject, { $0 }),
    (.eventsArray, { ($0 as? [Any])?.first }),
    (.eventsArrayInString, { (try unpacked($0) as? [Any])?.first }),
    (.eventsStringsInArray, { try unpacked(($0 as? [Any])?.first) }),
    (.severalEvents, { (try unpacked($0) as? [Any])?.first }),
    (.unknownMembers, { try unpacked($0) }),
  ]

  @Test(arguments: forms.indices)
  func packsEventsInEachForm(_ index: Int) throws {
    let (fault, unpack) = Self.forms[index]
    let signed = try Self.signed(.emailEnabled, [fault])
    let event = try #require(try unpack(object(signed.jws.split(separator: ".")[1])["events"]) as? [String: Any])
    #expect(event["type"] as? String == "email-enabled")
    #expect(event["event_time"] as? Int64 == 1_657_617_063_012)
    #expect(event["is_private_email"] as? String == "true")
  }

  @Test func putsTwoEventsIntoOneNotification() throws {
    let signed = try Self.signed(.emailEnabled, [.severalEvents])
    let events = try #require(
      try unpacked(object(signed.jws.split(separator: ".")[1])["events"]) as? [[String: Any]])
    #expect(events.map { $0["type"] as? String } == ["email-enabled", "consent-revoked"])
    #expect(Set(events[1].keys) == ["type", "sub", "event_time"])
  }

  @Test func makesSeveralFaultsAtOnce() throws {
    let signed = try Self.signed(.emailEnabled, [.eventsObject, .eventTimeSeconds, .audienceArray])
    let claims = try object(signed.jws.split(separator: ".")[1])
    #expect(claims["aud"] as? [String] == ["com.example.app"])
    #expect((claims["events"] as? [String: Any])?["event_time"] as? Int64 == 1_657_617_063)
  }

  @Test func givesIdentityTokensTheClaimsOfIdentityTokens() throws {
    let signed = try Self.signed(.consentRevoked, [.identityToken])
    let claims = try object(signed.jws.split(separator: ".")[1])
    #expect(claims["sub"] as? String == Person(named: "Ada").subject)
    #expect(claims["events"] == nil)
    #expect(claims["jti"] == nil)
  }

  @Test func makesUpPeopleOfApplesForm() throws {
    let person = Person(named: "Ada")
    #expect(person == Person(named: "Ada"))
    #expect(person != Person(named: "Grace"))
    #expect(person.subject.wholeMatch(of: /00[0-9]{4}\.[0-9a-f]{32}\.[0-2][0-9][0-5][0-9]/) != nil)
    #expect(person.address.wholeMatch(of: /[a-z0-9]{10}@privaterelay\.appleid\.com/) != nil)
    #expect(AppleSubject(person.subject) != nil)
    #expect(RelayAddress(person.address) != nil)
    let subject = "000768.6166f031167141e695698239959f591a.1521"
    #expect(Person(named: subject).subject == subject)
    #expect(Person(named: "000768.6166f031167141e695698239959f591a").subject != subject)
  }

  private func isGenuine(_ jws: String, _ key: RSAPrivateKey = key.privateKey) throws -> Bool {
    let parts = jws.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let signature = Base64URL.decode(String(parts[2])) else { return false }
    return try key.publicKey.verifiesRS256(signature, of: [UInt8]("\(parts[0]).\(parts[1])".utf8))
  }
}

private func object(_ part: Substring) throws -> [String: Any] {
  let bytes = try #require(Base64URL.decode(String(part)))
  return try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
}

/// What a string holds as JSON.
private func unpacked(_ string: Any?) throws -> Any? {
  try JSONSerialization.jsonObject(with: Data((string as? String ?? "").utf8))
}
