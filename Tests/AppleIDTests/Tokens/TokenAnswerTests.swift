import AccountEvents
import Cryptography
import EventLoop
import HTTPClient
import HTTPServer
import TestSupport
import Testing

@testable import AppleID

/// What is made of answers, whoever sends them.
@Suite struct TokenAnswerTests {
  static let whole =
    #"{"access_token":"a1.0.x.y","token_type":"Bearer","expires_in":3600,"refresh_token":"r1","id_token":"a.b.c"}"#

  @Test func readsTokens() throws {
    let tokens = try GrantedTokens(reading: Array(Self.whole.utf8))
    #expect(tokens.accessToken.text == "a1.0.x.y")
    #expect(tokens.lifetime == .seconds(3600))
    #expect(tokens.refreshToken?.text == "r1")
    #expect(tokens.identityToken?.text == "a.b.c")
    let few = try GrantedTokens(
      reading: Array(#" {"token_type":"bearer", "new":[{}], "expires_in":1, "access_token":"a" } "#.utf8))
    #expect(few.refreshToken == nil && few.identityToken == nil)
  }

  static let malformed: [String] = [
    "", "{}", "[]", "null", "<html>", whole + "x", String(whole.dropLast()),
    #"{"error":"invalid_grant"}"#,
    #"{"access_token":"a"}"#, #"{"expires_in":3600}"#,
    #"{"access_token":"a","expires_in":"3600"}"#, #"{"access_token":"a","expires_in":0}"#,
    #"{"access_token":"a","expires_in":-1}"#, #"{"access_token":"a","expires_in":3.6e3}"#,
    #"{"access_token":"a","expires_in":9007199254740991}"#,
    #"{"access_token":"","expires_in":3600}"#, #"{"access_token":"a b","expires_in":3600}"#,
    #"{"access_token":"a\n","expires_in":3600}"#, #"{"access_token":null,"expires_in":3600}"#,
    #"{"access_token":"\#(String(repeating: "a", count: 4097))","expires_in":3600}"#,
    #"{"access_token":"a","access_token":"a","expires_in":3600}"#,
    #"{"access_token":"a","\u0061ccess_token":"b","expires_in":3600}"#,
    #"{"access_token":"a","expires_in":3600,"token_type":"mac"}"#,
    #"{"access_token":"a","expires_in":3600,"refresh_token":7}"#,
    #"{"access_token":"a","expires_in":3600,"refresh_token":""}"#,
    #"{"access_token":"a","expires_in":3600,"id_token":{}}"#,
    #"{"access_token":"a","expires_in":3600,"x":\#(String(repeating: "[", count: 100))"#,
    "{\"access_token\":\"\u{e9}\",\"expires_in\":3600}",
  ]

  @Test(arguments: malformed) func refusesWhatIsNoTokens(_ body: String) {
    #expect { try GrantedTokens(reading: Array(body.utf8)) } throws: { error in
      guard let error = error as? AppleTokenError else { return false }
      return error.code == .malformedAnswer && error.isUncertain && error.isTransient
    }
  }

  private func error(
    _ status: Int, _ body: String, _ headers: [(name: String, value: String)] = [], hiding secrets: [String] = []
  ) -> AppleTokenError {
    AppleTokenError(HTTPClientResponse(status: status, headers: headers, body: Array(body.utf8)), hiding: secrets)
  }

  @Test(arguments: [
    (400, #"{"error":"invalid_client"}"#, "invalid-client: status 400, invalid_client"),
    (401, #"{"error":"invalid_client"}"#, "invalid-client: status 401, invalid_client"),
    (400, #"{"error":"unauthorized_client"}"#, "unauthorized-client: status 400, unauthorized_client"),
    (400, #"{"error":"invalid_request"}"#, "invalid-request: status 400, invalid_request"),
    (
      400, #"{"error":"invalid_grant","error_description":"The code has expired."}"#,
      "invalid-grant: status 400, invalid_grant: The code has expired."
    ),
    (400, #"{"error":"unsupported_grant_type"}"#, "unsupported-grant-type: status 400, unsupported_grant_type"),
    (400, #"{"error":"invalid_scope"}"#, "invalid-scope: status 400, invalid_scope"),
    (400, #"{"error":"slow_down","error_description":7}"#, "unknown-error: status 400, slow_down"),
    (400, #"{"error":"a\u0007 b"}"#, "unknown-error: status 400, a reason that is no word"),
    (
      400, "{\"error\":\"invalid_grant\",\"error_description\":\"\\u0007\u{e9}\"}",
      "invalid-grant: status 400, invalid_grant: ???"
    ),
    (400, #"{"error":7}"#, "malformed-answer: status 400, unexpected-kind at byte 9"),
    (400, #"{"error":"a","error":"a"}"#, "malformed-answer: status 400, duplicate-member at byte 13"),
    (400, "<html>", "malformed-answer: status 400, malformed at byte 0"),
    (404, "<html>", "unexpected-status: status 404, malformed at byte 0"),
    (302, "", "unexpected-status: status 302"),
    (204, "", "unexpected-status: status 204"),
    (408, "", "unavailable: status 408"),
    (500, #"{"error":"invalid_client"}"#, "unavailable: status 500"),
    (503, "<html>", "unavailable: status 503"),
    (429, #"{"error":"invalid_client"}"#, "throttled: status 429"),
  ]) func saysWhatAnErrorOfApplesIs(status: Int, body: String, words: String) {
    #expect(error(status, body).description == words)
  }

  @Test(arguments: [
    ("30", Duration.seconds(30)), ("0", .zero), ("999999999", .seconds(86_400)), ("-1", nil), ("", nil), ("1.5", nil),
    ("9999999999999999999999", nil), ("Wed, 21 Oct 2026 07:28:00 GMT", nil),
  ]) func knowsHowLongAppleWantsNotToBeAsked(text: String, time: Duration?) {
    #expect(error(429, "", [("retry-after", text)]).retryAfter == time)
    #expect(error(503, "", [("Retry-After", text)]).retryAfter == time)
  }

  @Test func anErrorNeverRepeatsWhatWasSent() {
    let token = "r5f7b3a9c.0.rwtz.QmFzZTY0dXJs"
    for body in [
      #"{"error":"invalid_grant","error_description":"the token \#(token) is not yours"}"#,
      #"{"error":"\#(token)"}"#, #"{"error":"invalid_grant","error_description":"\#(token)"}"#,
      #"{"error":"invalid_grant","error_description":"\#(String(repeating: " ", count: 190))\#(token)"}"#,
    ] {
      let error = error(400, body, hiding: [token])
      var dumped = ""
      dump(error, to: &dumped)
      #expect(!"\(error) \(dumped)".contains(token.prefix(8)))
    }
  }

  /// Each code, what can make the same request succeed, and whether nobody can know what it did.
  static let meanings: [(AppleTokenError.Code, AppleTokenError.Remedy, isUncertain: Bool)] = [
    (.noKey, .operator, false), (.unsigned, .operator, false), (.malformedRequest, .none, false),
    (.unreachable, .time, false),
    (.certificate, .operator, false), (.interrupted, .time, true), (.deadline, .time, true),
    (.unavailable, .time, true), (.malformedAnswer, .time, true), (.unexpectedStatus, .operator, true),
    (.cancelled, .time, true), (.throttled, .time, false), (.invalidClient, .operator, false),
    (.unauthorizedClient, .operator, false), (.forbidden, .operator, false), (.invalidRequest, .none, false),
    (.invalidGrant, .none, false), (.invalidToken, .time, false), (.unsupportedGrantType, .none, false),
    (.invalidScope, .operator, false), (.unknownError, .none, false),
  ]

  @Test(arguments: meanings)
  func everyCodeSaysWhetherToTryAgain(
    code: AppleTokenError.Code, remedy: AppleTokenError.Remedy, isUncertain: Bool
  ) {
    let error = AppleTokenError(code, "")
    #expect(error.remedy == remedy)
    #expect(error.isTransient == (remedy == .time))
    #expect(error.isUncertain == isUncertain)
  }

  @Test func noCodeIsWithoutMeaning() {
    #expect(Self.meanings.map(\.0) == AppleTokenError.Code.allCases)
  }

  @Test func tokensAreNowhereToBeSeen() throws {
    let tokens = try GrantedTokens(reading: Array(Self.whole.utf8))
    var dumped = ""
    dump(Grant.granted(tokens), to: &dumped)
    let code = try #require(AuthorizationCode("c0de"))
    dump(code, to: &dumped)
    let all = "\(tokens) \(Grant.granted(tokens)) \(String(reflecting: tokens)) \(code) \(String(reflecting: code))"
    for text in ["a1.0", "r1", "a.b.c", "c0de"] { #expect(!(all + dumped).contains(text)) }
    #expect("\(code)" == "«redacted»")
  }

  @Test(arguments: [
    ("", false), (" ", false), ("a b", false), ("é", false), ("a\n", false), ("a\u{7f}", false), ("~!\"", true),
  ])
  func aTokenIsVisibleASCII(text: String, isToken: Bool) {
    #expect((RefreshToken(text) != nil) == isToken)
    #expect((AccessToken(text) != nil) == isToken)
    #expect((AuthorizationCode(text) != nil) == isToken)
    #expect((UnverifiedIdentityToken(text) != nil) == isToken)
  }
}
