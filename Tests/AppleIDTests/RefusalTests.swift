import AccountEvents
import AppleID
import Cryptography
import JSON
import Testing

/// Every reason for which a notification is refused, and what meets it.
@Suite struct RefusalTests {
  /// Bodies that are refused for what they are, before any key is looked for.
  @Test(arguments: bodies)
  func refusesTheBody(refusal: Refusal, body: String) {
    #expect(Forge.verify(Array(body.utf8)).refusal == refusal)
    #expect(Forge.verify(Array(body.utf8), keys: .none).refusal == refusal, "and needs no key for it")
  }

  private static let parts = Forge.jws().split(separator: ".").map(String.init)
  private static let bodies: [(Refusal, String)] =
    [
      (.bodyTooLarge, String(repeating: " ", count: UnverifiedNotification.maximumBodySize + 1)),
      (.malformedBody, ""), (.malformedBody, "{"), (.malformedBody, "payload=\(Forge.jws())"),
      (.malformedBody, Forge.jws()),
      (.malformedBody, "null"), (.malformedBody, "[]"), (.malformedBody, "\"\(Forge.jws())\""),
      (.malformedBody, "<!DOCTYPE html>"), (.malformedBody, #"{"payload":"a.b.c"} "# + "x"),
      (.malformedBody, #"{"payload":"\#(Forge.jws())","payload":"\#(Forge.jws())"}"#),
      (.malformedBody, #"{"payload":"\#(Forge.jws())","\u0070ayload":"\#(Forge.jws())"}"#),
      (.malformedBody, #"{"payload":"\#(Forge.jws())","more":{"a":1,"a":2}}"#),
      (.malformedBody, #"{"payload":"\#(Forge.jws())","more":\#(String(repeating: "[", count: 1000))"#),
      (.malformedBody, String(repeating: " ", count: UnverifiedNotification.maximumBodySize)),
      (.payloadMissing, "{}"), (.payloadMissing, #"{"payload":null}"#), (.payloadMissing, #"{"payload":{}}"#),
      (.payloadMissing, #"{"Payload":"\#(Forge.jws())"}"#), (.payloadMissing, #"{"payload ":"\#(Forge.jws())"}"#),
      (.payloadMissing, #"{"signedPayload":"\#(Forge.jws())"}"#),  // an App Store server notification
      (.payloadMissing, #"{"inner":{"payload":"\#(Forge.jws())"}}"#),
    ]
    + [
      (.notThreeParts, ""), (.notThreeParts, "a"), (.notThreeParts, "."), (.notThreeParts, "\(parts[0]).\(parts[1])"),
      (.notThreeParts, Forge.jws() + "."), (.notThreeParts, "." + Forge.jws()), (.notThreeParts, Forge.jws() + ".a.b"),
      (.notThreeParts, "\(parts[0])..\(parts[1]).\(parts[2])"),
      (.malformedEncoding, ".."), (.malformedEncoding, ".\(parts[1]).\(parts[2])"),
      (.malformedEncoding, "\(parts[0])..\(parts[2])"), (.malformedEncoding, "\(parts[0]).\(parts[1])."),
      (.malformedEncoding, Forge.jws() + "="), (.malformedEncoding, Forge.jws() + "=="),
      (.malformedEncoding, " " + Forge.jws()), (.malformedEncoding, Forge.jws() + " "),
      (.malformedEncoding, Forge.jws() + "\n"),
      (.malformedEncoding, Forge.jws() + "AAA"), (.malformedEncoding, "\(parts[0])+.\(parts[1]).\(parts[2])"),
      (.malformedEncoding, "\(parts[0]).\(parts[1])é.\(parts[2])"),
      // The last character of 256 bytes has four unused bits: this one sets one of them.
      (.malformedEncoding, "\(parts[0]).\(parts[1]).\(String(repeating: "A", count: 341))B"),
    ].map { ($0, Forge.text(["payload": .string($1)])) }

  /// Headers that are refused before any key is looked for, whoever signed them.
  @Test(
    arguments: [
      (.malformedHeader, "{"), (.malformedHeader, "[]"), (.malformedHeader, "null"), (.malformedHeader, "\u{0}"),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":"RS256"}x"#),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":"RS256","alg":"RS256"}"#),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":"none","\u0061lg":"RS256"}"#),
      (.malformedHeader, #"{"kid":7,"alg":"RS256"}"#),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":["RS256"]}"#),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":"RS256","typ":null}"#),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":"RS256","a":[[[[1]]]]}"#),
      (.malformedHeader, #"{"kid":"fh6Bs8C","alg":"RS256","a":"\#(String(repeating: "a", count: 1000))"}"#),
      (.criticalHeader, #"{"kid":"fh6Bs8C","alg":"RS256","crit":["b64"],"b64":false}"#),
      (.criticalHeader, #"{"kid":"fh6Bs8C","alg":"RS256","crit":[]}"#),
      (.criticalHeader, #"{"kid":"fh6Bs8C","alg":"RS256","crit":null}"#),
      (.keyInHeader, #"{"kid":"fh6Bs8C","alg":"RS256","jku":"https://example.com/keys"}"#),
      (.keyInHeader, #"{"kid":"fh6Bs8C","alg":"RS256","jwk":{"kty":"RSA"}}"#),
      (.keyInHeader, #"{"kid":"fh6Bs8C","alg":"RS256","x5u":"https://example.com/chain"}"#),
      (.keyInHeader, #"{"alg":"ES256","x5c":["MIIB"]}"#),  // as the App Store's notifications have it
      (.keyInHeader, #"{"kid":"fh6Bs8C","alg":"RS256","x5t":"abc"}"#),
      (.keyInHeader, #"{"kid":"fh6Bs8C","alg":"RS256","x5t#S256":"abc"}"#),
      (.wrongAlgorithm, #"{"kid":"fh6Bs8C"}"#), (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":""}"#),
      (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"none"}"#), (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"None"}"#),
      (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"HS256"}"#), (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"rs256"}"#),
      (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"RS512"}"#), (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"PS256"}"#),
      (.wrongAlgorithm, #"{"kid":"fh6Bs8C","alg":"ES256"}"#),  // a client secret, for one
      (.wrongType, #"{"kid":"fh6Bs8C","alg":"RS256","typ":"at+jwt"}"#),
      (.wrongType, #"{"kid":"fh6Bs8C","alg":"RS256","typ":""}"#),
      (.malformedKeyID, #"{"alg":"RS256"}"#), (.malformedKeyID, #"{"kid":"","alg":"RS256"}"#),
      (.malformedKeyID, #"{"kid":"a b","alg":"RS256"}"#), (.malformedKeyID, #"{"kid":"fh6Bs8C\n","alg":"RS256"}"#),
      (.malformedKeyID, #"{"kid":"\#(String(repeating: "k", count: 65))","alg":"RS256"}"#),
    ] as [(Refusal, String)])
  func refusesTheHeader(refusal: Refusal, header: String) {
    let body = Forge.body(Forge.jws(header: header, claims: Forge.text(Forge.claims())))
    #expect(Forge.verify(body, keys: .none).refusal == refusal)
  }

  @Test(
    arguments: [
      ["typ": "JWT"], ["typ": "jwt"], ["typ": "secevent+jwt"], ["typ": "application/secevent+jwt"],
      ["typ": "JWT", "cty": "json", "iat": 5, "future": ["a": [1]]],
    ] as [KeyValuePairs<String, JSONValue?>])
  func aHarmlessHeaderIsNoReason(additions: KeyValuePairs<String, JSONValue?>) {
    #expect(Forge.verify(header: Forge.changed(Forge.header, additions)).notification != nil)
  }

  @Test func furtherMembersOfTheBodyAreNoReason() {
    let body = #" {"more":[1,{"a":null}],"payload" : "\#(Forge.jws())","Payload":"x"} "#
    #expect(Forge.verify(Array(body.utf8)).notification != nil)
    let escaped = #"{"\u0070ayload":"\#(Forge.jws().replacing("e", with: "\\u0065"))"}"#
    #expect(Forge.verify(Array(escaped.utf8)).notification != nil)
  }

  @Test func aKeyThatIsNotInTheSetIsAQuestionAndNotARefusal() throws {
    let header: JSONValue = ["kid": "rotated", "alg": "RS256"]
    #expect(Forge.verify(header: header).unknownKey == KeyID("rotated"))
    #expect(Forge.verify(Forge.body(Forge.jws()), keys: .none).unknownKey == KeyID(Forge.keyID))
  }

  @Test func aStrangersSignatureIsRefused() {
    #expect(Forge.verify(key: Forge.stranger).refusal == .wrongSignature)
    let parts = Self.parts
    for signature in ["AA", String(repeating: "A", count: 342), parts[2] + "AAAA", String(parts[2].dropLast(2))] {
      #expect(Forge.verify(Forge.body("\(parts[0]).\(parts[1]).\(signature)")).refusal == .wrongSignature)
    }
    let other = Forge.jws(claims: Forge.claims(["jti": "another"])).split(separator: ".")
    #expect(Forge.verify(Forge.body("\(parts[0]).\(other[1]).\(parts[2])")).refusal == .wrongSignature)
  }

  /// The signature comes before the claims: nobody learns from our answers what we would have accepted.
  @Test func claimsAreNotReadUntilTheSignatureHolds() {
    #expect(Forge.verify(claims: Forge.claims(["iss": "x"]), key: Forge.stranger).refusal == .wrongSignature)
    let jws = Forge.jws(header: Forge.text(Forge.header), claims: "no claims", key: Forge.stranger)
    #expect(Forge.verify(Forge.body(jws)).refusal == .wrongSignature)
  }

  /// Well signed by Apple's key, and still no notification of ours.
  @Test(
    arguments: [
      (.malformedClaims, ["iss": nil]), (.malformedClaims, ["iss": 5]), (.malformedClaims, ["aud": nil]),
      (.malformedClaims, ["aud": []]), (.malformedClaims, ["aud": [:]]),
      (.malformedClaims, ["aud": ["com.example.app", 5]]),
      (.malformedClaims, ["exp": nil]), (.malformedClaims, ["exp": "1657703492"]), (.malformedClaims, ["exp": -1]),
      (.malformedClaims, ["exp": 9_007_199_254_740_991]), (.malformedClaims, ["iat": nil]),
      (.malformedClaims, ["iat": true]),
      (.malformedClaims, ["iat": -1]), (.malformedClaims, ["iat": 1_657_617_092_000]), (.malformedClaims, ["jti": 5]),
      (.malformedClaims, ["jti": ""]),
      (.malformedClaims, ["jti": "a b"]), (.malformedClaims, ["jti": .string(String(repeating: "j", count: 128))]),
      (.identityToken, ["sub": .string(Forge.subject)]), (.identityToken, ["nonce": "n"]),
      (.identityToken, ["at_hash": "h"]),
      (.identityToken, ["c_hash": "h"]), (.identityToken, ["sub": .null]),
      // Apple's identity token as a whole, with a valid signature: every user holds one.
      (
        .identityToken,
        [
          "jti": nil, "events": nil, "sub": .string(Forge.subject), "nonce": "n", "c_hash": "h",
          "email": "a@example.com",
          "email_verified": "true", "auth_time": .integer(Forge.issue), "nonce_supported": true, "real_user_status": 2,
        ]
      ),
      (.notANotification, ["events": nil]), (.notANotification, ["jti": nil]),
      (.notANotification, ["events": nil, "jti": nil]),
      (.notANotification, ["events": nil, "Events": "[]"]),
      (.wrongIssuer, ["iss": ""]), (.wrongIssuer, ["iss": "https://appleid.apple.com/"]),
      (.wrongIssuer, ["iss": "http://appleid.apple.com"]),
      (.wrongIssuer, ["iss": "https://account.apple.com"]),
      (.wrongIssuer, ["iss": "https://appleid.apple.com.example.com"]),
      (.unknownAudience, ["aud": "com.example.unknown"]), (.unknownAudience, ["aud": ""]),
      (.unknownAudience, ["aud": "COM.EXAMPLE.APP"]),
      (.unknownAudience, ["aud": "com.example.app "]), (.unknownAudience, ["aud": ["com.example.unknown", "a b"]]),
      (.unknownAudience, ["aud": "A1B2C3D4E5.com.example.app"]),
      (.severalTeams, ["aud": ["com.example.app", "org.example.other"]]),
      (.severalTeams, ["aud": ["com.example.app", "com.example.unknown", "com.example.web", "org.example.other"]]),
    ] as [(Refusal, KeyValuePairs<String, JSONValue?>)])
  func refusesTheClaims(refusal: Refusal, changes: KeyValuePairs<String, JSONValue?>) {
    #expect(Forge.verify(claims: Forge.claims(changes)).refusal == refusal)
  }

  @Test(arguments: [
    "null", "[]", "x", "{", "\"eyJhbGciOiJub25lIn0\"",
    #"{"iss":"https://appleid.apple.com","iss":"https://appleid.apple.com"}"#,
    #"{"events":"[]","\u0065vents":"[]"}"#, #"{"iat":1657617092.5}"#, "{}{}",
  ])
  func refusesClaimsThatAreNoObject(claims: String) {
    let jws = Forge.jws(header: Forge.text(Forge.header), claims: claims)
    #expect(Forge.verify(Forge.body(jws)).refusal == .malformedClaims)
  }

  /// What operators see and what Apple gets: one label and one sentence each, and a code of RFC 8935.
  @Test func everyReasonHasALabelACodeAndASentenceOfItsOwn() {
    #expect(Set(Refusal.allCases.map(\.description)).count == Refusal.allCases.count)
    for refusal in Refusal.allCases {
      #expect(refusal.rawValue.allSatisfy { $0.isLowercase || $0 == "-" })
      #expect(refusal.description.hasSuffix(".") && refusal.description.utf8.allSatisfy { 0x20...0x7e ~= $0 })
    }
    #expect(
      Set(Refusal.allCases.map(\.code.rawValue))
        == ["invalid_request", "invalid_key", "invalid_issuer", "invalid_audience", "authentication_failed"])
    #expect(Refusal.unknownKey.code == .invalidKey && Refusal.wrongSignature.code == .authenticationFailed)
  }
}
