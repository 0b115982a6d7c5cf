import AccountEvents
import AppleID
import Cryptography
import JSON
import TestSupport
import Testing

/// What an identity token has to say, and to which sign-in it belongs.
@Suite struct IdentityTokenTests {
  @Test func whatAppleSignedForThisSignInIsBelieved() throws {
    let token = try #require(try SignedIn.verify(claims: [:]).token)
    #expect(token.account == Account(team: Forge.team, subject: try #require(AppleSubject(Forge.subject))))
    #expect(token.client == Forge.app)
    #expect(token.issuedAt == Timestamp(seconds: Forge.issue) && token.authenticatedAt == token.issuedAt)
    #expect(token.expiresAt == Timestamp(seconds: Forge.issue + 86_400))
    #expect(token.isBoundByNonce)
    let email = try #require(token.email)
    #expect(email.address == Forge.address("ada@privaterelay.appleid.com") && email.isVerified && email.isPrivate)
    #expect(token.realUserStatus == .likelyReal)
    #expect(token.transferSubject == nil && token.organization == nil && token.scopes.isEmpty)
  }

  @Test func whatIsNotThereIsNotMadeUp() throws {
    let token = try #require(
      try SignedIn.verify(
        claims: [
          "nonce": nil, "c_hash": nil, "email": nil, "email_verified": nil, "is_private_email": nil, "auth_time": nil,
          "nonce_supported": nil, "real_user_status": nil,
        ], of: SignedIn.signIn(nonce: nil)
      ).token)
    #expect(token.email == nil && token.authenticatedAt == nil && token.realUserStatus == nil && !token.isBoundByNonce)
  }

  /// Apple wrote strings until February 2024, and booleans since; `is_private_email` is left out rather than false.
  @Test(
    arguments: [(true, true), (false, false), ("true", true), ("false", false), (nil, false)] as [(JSONValue?, Bool)])
  func booleansMayBeStrings(written: JSONValue?, meaning: Bool) throws {
    let token = try #require(
      try SignedIn.verify(claims: ["email_verified": written, "is_private_email": written]).token)
    let email = try #require(token.email)
    #expect(email.isVerified == meaning && email.isPrivate == meaning)
  }

  @Test func aManagedAccountHasAnOrganizationAndPerhapsNoAddress() throws {
    let token = try #require(
      try SignedIn.verify(
        claims: [
          "email": "", "email_verified": false, "is_private_email": nil, "org_id": "org-1",
          "scopes": ["edu.users.read", "edu.classes.read"],
        ]
      ).token)
    #expect(token.email == nil && token.organization == "org-1")
    #expect(token.scopes == ["edu.users.read", "edu.classes.read"])
  }

  @Test func anAppThatChangedTeamsLearnsWhoThePersonWas() throws {
    let text = "001876.r4d5a3c3a1b2c4d5e6f7a8b9c0d1e2f3a"
    let token = try #require(try SignedIn.verify(claims: ["transfer_sub": .string(text)]).token)
    #expect(token.transferSubject?.text == text)
    #expect(try !"\(#require(token.transferSubject))".contains(text))
  }

  @Test(
    arguments: [(0, .unsupported), (1, .unknown), (2, .likelyReal), (7, .unknown)]
      as [(Int64, VerifiedIdentityToken.RealUserStatus)])
  func aStatusThatIsNotKnownYetIsNone(written: Int64, status: VerifiedIdentityToken.RealUserStatus) throws {
    #expect(try SignedIn.verify(claims: ["real_user_status": .integer(written)]).token?.realUserStatus == status)
  }

  /// The claim, whether Apple supports nonces there, what was sent, and what comes of it.
  @Test(
    arguments: [
      (SignedIn.nonce, true, SignedIn.nonce, nil), (SignedIn.hashedNonce, true, SignedIn.nonce, nil),
      (SignedIn.hashedNonce.uppercased(), true, SignedIn.nonce, nil),
      (SignedIn.nonce, true, SignedIn.hashedNonce, .wrongNonce), ("another", true, SignedIn.nonce, .wrongNonce),
      ("", true, SignedIn.nonce, .wrongNonce), ("another", false, SignedIn.nonce, .wrongNonce),
      (SignedIn.nonce.uppercased(), true, SignedIn.nonce, .wrongNonce),
      (nil, true, SignedIn.nonce, .missingNonce), (nil, "true", SignedIn.nonce, .missingNonce),
      (nil, false, SignedIn.nonce, nil), (nil, nil, SignedIn.nonce, nil),
      (SignedIn.nonce, true, nil, .unexpectedNonce), (SignedIn.nonce, false, nil, .unexpectedNonce),
      (nil, true, nil, nil),
    ] as [(String?, JSONValue?, String?, IdentityTokenRefusal?)])
  func aTokenBelongsToTheSignInOfItsNonce(
    claim: String?, isSupported: JSONValue?, sent: String?, refusal: IdentityTokenRefusal?
  ) throws {
    let verdict = try SignedIn.verify(
      claims: ["nonce": claim.map { .string($0) }, "nonce_supported": isSupported], of: SignedIn.signIn(nonce: sent))
    #expect(verdict.refusal == refusal)
    if refusal == nil { #expect(try #require(verdict.token).isBoundByNonce == (claim != nil)) }
  }

  @Test func whatCameBesideItHasToBelongToIt() throws {
    let other = SignedIn.accessToken + "x"
    let hashes: KeyValuePairs<String, JSONValue?> = [
      "at_hash": .string(SignedIn.accessTokenHash), "c_hash": .string(SignedIn.codeHash),
    ]
    func refusal(
      _ claims: KeyValuePairs<String, JSONValue?>, code: String?, accessToken: String?
    ) throws -> IdentityTokenRefusal? {
      let verdict = try SignedIn.verify(claims: claims, of: SignedIn.signIn(code: code, accessToken: accessToken))
      #expect((verdict.token == nil) == (verdict.refusal != nil))
      return verdict.refusal
    }
    #expect(try refusal(hashes, code: SignedIn.code, accessToken: SignedIn.accessToken) == nil)
    #expect(try refusal(hashes, code: nil, accessToken: nil) == nil)
    #expect(try refusal(hashes, code: SignedIn.code, accessToken: other) == .wrongAccessToken)
    #expect(try refusal(hashes, code: other, accessToken: SignedIn.accessToken) == .wrongCode)
    #expect(try refusal(["at_hash": nil, "c_hash": nil], code: other, accessToken: other) == nil, "not said by Apple")
  }

  /// Well signed by Apple's key, and still no sign-in to this app.
  @Test(
    arguments: [
      (.malformedClaims, ["iss": nil]), (.malformedClaims, ["iss": 5]), (.malformedClaims, ["aud": nil]),
      (.malformedClaims, ["aud": []]), (.malformedClaims, ["aud": 5]), (.malformedClaims, ["exp": nil]),
      (.malformedClaims, ["exp": "1657703492"]), (.malformedClaims, ["exp": .integer(Forge.issue)]),
      (.malformedClaims, ["exp": 9_007_199_254_740_991]), (.malformedClaims, ["iat": nil]),
      (.malformedClaims, ["iat": true]), (.malformedClaims, ["iat": -1]), (.malformedClaims, ["sub": nil]),
      (.malformedClaims, ["sub": ""]), (.malformedClaims, ["sub": 7]), (.malformedClaims, ["sub": "a b"]),
      (.malformedClaims, ["sub": .string(String(repeating: "a", count: 256))]), (.malformedClaims, ["nonce": 1]),
      (.malformedClaims, ["nonce_supported": "yes"]), (.malformedClaims, ["nonce_supported": 1]),
      (.malformedClaims, ["email": "no address"]), (.malformedClaims, ["email": ["a@example.com"]]),
      (.malformedClaims, ["email_verified": "TRUE"]), (.malformedClaims, ["is_private_email": 1]),
      (.malformedClaims, ["auth_time": "now"]), (.malformedClaims, ["auth_time": -1]),
      (.malformedClaims, ["at_hash": 1]), (.malformedClaims, ["c_hash": nil, "c_hash\u{0}": nil, "transfer_sub": ""]),
      (.malformedClaims, ["transfer_sub": "a b"]), (.malformedClaims, ["org_id": 1]),
      (.malformedClaims, ["scopes": [1]]),
      (.malformedClaims, ["real_user_status": "2"]),
      (.wrongIssuer, ["iss": "https://appleid.apple.com/"]), (.wrongIssuer, ["iss": "https://account.apple.com"]),
      (.wrongIssuer, ["iss": ""]), (.wrongAudience, ["aud": "org.example.other"]), (.wrongAudience, ["aud": ""]),
      (.wrongAudience, ["aud": "COM.example.app"]),
      (.wrongAudience, ["aud": ["com.example.app", "org.example.other"]]),
      (.expired, ["exp": .integer(Forge.issue - 1), "iat": .integer(Forge.issue - 86_400)]),
      (.notYetValid, ["iat": .integer(Forge.issue + 121)]),
      (.notification, ["events": "{}"]), (.notification, ["events": ["type": "consent-revoked"]]),
    ] as [(IdentityTokenRefusal, KeyValuePairs<String, JSONValue?>)])
  func refusesTheClaims(refusal: IdentityTokenRefusal, changes: KeyValuePairs<String, JSONValue?>) throws {
    #expect(try SignedIn.verify(claims: changes).refusal == refusal)
  }

  @Test(arguments: ["aud", "sub", "nonce", "email_verified", "made_up"])
  func refusesAClaimThatStandsTwice(name: String) throws {
    let claims = Forge.text(SignedIn.claims(["made_up": 1]))
    let twice = "\(claims.dropLast()),\"\(name)\":\(name == "email_verified" ? "true" : "\"x\"")}"
    let header = Forge.text(Forge.header)
    #expect(try SignedIn.verify(Forge.jws(header: header, claims: claims)).token != nil)
    #expect(try SignedIn.verify(Forge.jws(header: header, claims: twice)).refusal == .malformedClaims)
  }

  @Test func aClaimThatNobodyKnowsYetIsPassedOver() throws {
    #expect(try SignedIn.verify(claims: ["made_up": ["a": [1, .null]], "jti": "x"]).token != nil)
  }

  @Test func oneAudienceMayStandInAList() throws {
    #expect(try SignedIn.verify(claims: ["aud": ["com.example.app"]]).token != nil)
  }

  @Test func anAppOfNobodyHereIsNoAudience() throws {
    let verdict = try SignedIn.verify(claims: ["aud": "com.example.web"], of: SignedIn.signIn(to: Forge.web))
    #expect(verdict.refusal == .wrongAudience)
  }

  @Test func itsTimeEndsWithTheClocksTolerance() throws {
    let end = Forge.issue + 86_400 + 60
    #expect(try SignedIn.verify(claims: [:], at: #require(Timestamp(seconds: end))).token != nil)
    #expect(try SignedIn.verify(claims: [:], at: #require(Timestamp(seconds: end + 1))).refusal == .expired)
    #expect(try SignedIn.verify(claims: [:], at: #require(Timestamp(seconds: Forge.issue - 60))).token != nil)
    #expect(
      try SignedIn.verify(claims: [:], at: #require(Timestamp(seconds: Forge.issue - 61))).refusal == .notYetValid)
  }

  /// Both are signed by Apple, with the same key, as the same issuer and for the same app.
  @Test func neitherPassesForTheOther() throws {
    #expect(try SignedIn.verify(Forge.jws()).refusal == .notification)
    #expect(Forge.verify(claims: SignedIn.claims()).refusal == .identityToken)
    // Whatever the one has of the other.
    let both = SignedIn.claims(["events": .string(Forge.text(Forge.event())), "jti": .string(Forge.jti)])
    #expect(try SignedIn.verify(Forge.jws(claims: both)).refusal == .notification)
    #expect(Forge.verify(claims: both).refusal == .identityToken)
  }

  @Test(arguments: Authentic.notifications)
  func anAuthenticNotificationSignsNobodyIn(authentic: Authentic) throws {
    let text = try Authentic.keys()
    let keys = try unsafe AppleKeySet(reading: text.span.bytes)
    let client = try #require(ClientID(authentic.audience))
    let verifier = IdentityTokenVerifier(
      issuer: "https://appleid.apple.com", teams: [client: Forge.team], clockTolerance: .seconds(60))
    let verdict = verifier.verify(
      try #require(UnverifiedIdentityToken(authentic.jws)), of: SignedIn.signIn(to: client, nonce: nil), at: Forge.now,
      keys: keys)
    #expect(verdict.refusal == .notification)
  }

  @Test func whatNobodySignedIsRefusedBeforeItIsRead() throws {
    #expect(try SignedIn.verify(Forge.jws(claims: SignedIn.claims(), key: Forge.stranger)).refusal == .wrongSignature)
    let unread = Forge.jws(header: Forge.text(Forge.header), claims: "no claims", key: Forge.stranger)
    #expect(try SignedIn.verify(unread).refusal == .wrongSignature)
    #expect(
      try SignedIn.verify(Forge.jws(header: Forge.text(Forge.header), claims: "no claims")).refusal == .malformedClaims)
    let parts = Forge.jws(claims: SignedIn.claims()).split(separator: ".")
    for text in [
      "a", "a.b", "\(parts[0]).\(parts[1])", "\(parts[0])..\(parts[2])", "\(parts[0]).\(parts[1]).\(parts[2])=",
    ] {
      #expect(try SignedIn.verify(text).refusal == .malformedToken)
    }
    for (header, refusal) in [
      (["kid": "fh6Bs8C", "alg": "none"], .wrongAlgorithm), (["kid": "fh6Bs8C", "alg": "HS256"], .wrongAlgorithm),
      (["kid": "fh6Bs8C"], .wrongAlgorithm), (["alg": "RS256"], .malformedToken),
      (["kid": "fh6Bs8C", "alg": "RS256", "crit": ["exp"]], .malformedToken),
      (["kid": "fh6Bs8C", "alg": "RS256", "jku": "https://example.com"], .malformedToken),
      (["kid": "fh6Bs8C", "alg": "RS256", "typ": "secevent+jwt"], .malformedToken),
    ] as [(JSONValue, IdentityTokenRefusal)] {
      #expect(try SignedIn.verify(Forge.jws(header: header, claims: SignedIn.claims())).refusal == refusal)
    }
    let typed: JSONValue = ["kid": .string(Forge.keyID), "alg": "RS256", "typ": "JWT"]
    #expect(try SignedIn.verify(Forge.jws(header: typed, claims: SignedIn.claims())).token != nil)
  }

  /// A key that was withdrawn may be somebody else's by now, who also chooses the times.
  @Test func aKeyThatAppleHasNoMoreSignsNobodyIn() throws {
    let jws = Forge.jws(claims: SignedIn.claims())
    #expect(try SignedIn.verify(jws, keys: .none).unknownKey == KeyID(Forge.keyID))
    let text = (["keys": [try Forge.jwk("another", Forge.stranger)]] as JSONValue).bytes
    let later = try unsafe AppleKeySet(reading: text.span.bytes, at: Forge.now, after: Forge.keys)
    #expect(try SignedIn.verify(jws, keys: later).unknownKey == KeyID(Forge.keyID), "Apple may have it again")
    #expect(try SignedIn.verify(jws, keys: later, wasLookedUp: true).refusal == .retiredKey)
  }

  @Test func everyReasonIsAWordAndASentence() {
    for refusal in IdentityTokenRefusal.allCases {
      #expect(refusal.rawValue.allSatisfy { $0 == "-" || ("a"..."z").contains($0) })
      #expect(refusal.description.hasSuffix(".") || refusal.description.hasSuffix("?"))
    }
  }

  @Test func nothingOfAPersonIsToBeSeen() throws {
    let token = try #require(try SignedIn.verify(claims: ["transfer_sub": "001876.rabc"]).token)
    let nonce = try #require(SignInNonce(SignedIn.nonce))
    var dumped = ""
    dump([token], to: &dumped)
    for text in ["\(token)", "\([token])", dumped, "\(nonce)", "\([nonce])"] {
      for secret in [Forge.subject, "privaterelay", "001876", SignedIn.nonce] { #expect(!text.contains(secret)) }
    }
  }
}
