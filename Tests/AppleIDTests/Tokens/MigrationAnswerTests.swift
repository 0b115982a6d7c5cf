import AccountEvents
import HTTPClient
import Testing

@testable import AppleID

/// What is made of the migration endpoint's answers, whoever sends them.
@Suite struct MigrationAnswerTests {
  static let subject = "820417.faa325acbc78e1be1668ba852d492d8a.0219"
  static let address = "ep9ks2tnph@privaterelay.appleid.com"
  static let whole = #"{"sub":"\#(subject)","email":"\#(address)","is_private_email":true}"#

  static let users: [(String, address: String?, isPrivate: Bool)] = [
    (whole, address, true),
    (#"{"sub":"\#(subject)"}"#, nil, false),
    (#" { "is_private_email" : "true" , "new":[{}], "email":"\#(address)","sub":"\#(subject)" } "#, address, true),
    (#"{"sub":"\#(subject)","email":"a@b","is_private_email":"false"}"#, "a@b", false),
    (#"{"sub":"\#(subject)","email":"a@b","is_private_email":false}"#, "a@b", false),
    (#"{"sub":"\#(subject)","email":"a@b"}"#, "a@b", false),
    (#"{"sub":"\#(subject)","email":""}"#, nil, false),
  ]

  @Test(arguments: users) func readsAUser(body: String, address: String?, isPrivate: Bool) throws {
    let user = try TransferredUser(reading: Array(body.utf8))
    #expect(user.subject.text == Self.subject)
    #expect(user.address?.text == address)
    #expect(user.isPrivate == isPrivate)
  }

  @Test func readsATransferIdentifier() throws {
    let identifier = "001876.rfaa325acbc78e1be1668ba852d492d8a"
    for body in [#"{"transfer_sub":"\#(identifier)"}"#, #" {"sub":7, "transfer_sub" : "\#(identifier)"}"#] {
      #expect(try TransferSubject(reading: Array(body.utf8)).text == identifier)
    }
  }

  static let malformed: [String] = [
    "", "{}", "[]", "null", "<html>", whole + "x", String(whole.dropLast()), String(whole.prefix(70)),
    #"{"error":"invalid_request"}"#, #"{"email":"\#(address)"}"#,
    #"{"sub":7}"#, #"{"sub":null}"#, #"{"sub":[]}"#, #"{"sub":""}"#, #"{"sub":"a b"}"#, #"{"sub":"a\n"}"#,
    #"{"sub":"\#(subject)","sub":"\#(subject)"}"#, #"{"sub":"\#(subject)","\u0073ub":"a"}"#,
    #"{"sub":"\#(String(repeating: "1", count: 256))"}"#,
    #"{"sub":"\#(subject)","email":7}"#, #"{"sub":"\#(subject)","email":"no address"}"#,
    #"{"sub":"\#(subject)","email":"\#(String(repeating: "a", count: 320))@b"}"#,
    #"{"sub":"\#(subject)","email":"a@b","email":"a@c"}"#,
    #"{"sub":"\#(subject)","email":"a@b","is_private_email":1}"#,
    #"{"sub":"\#(subject)","email":"a@b","is_private_email":"yes"}"#,
    #"{"sub":"\#(subject)","email":"a@b","is_private_email":null}"#,
    #"{"sub":"\#(subject)","x":\#(String(repeating: "[", count: 100))"#,
    #"{"sub":"\#(subject)","x":"\#(String(repeating: "x", count: 65_536))"}"#,
  ]

  @Test(arguments: malformed) func refusesWhatIsNoUser(_ body: String) {
    let other = body.replacing(#""sub""#, with: #""transfer_sub""#).replacing("u0073ub", with: "u0074ransfer_sub")
    for body in [body, other] {
      let bytes = Array(body.utf8)
      #expect { _ = try TransferredUser(reading: bytes) } throws: { isMalformedAnswer($0) }
      // The sending team's answer has no address, and so no fault in one.
      guard !body.contains("email") || !body.contains("transfer_sub") else { continue }
      #expect { _ = try TransferSubject(reading: bytes) } throws: { isMalformedAnswer($0) }
    }
  }

  private func isMalformedAnswer(_ error: any Error) -> Bool {
    guard let error = error as? AppleTokenError else { return false }
    let said = "\(error) \(String(reflecting: error))"
    return error.code == .malformedAnswer && error.isTransient && !said.contains(Self.subject.prefix(6))
      && !said.contains("@")
  }

  static let refusals: [(Int, String, String)] = [
    (400, #"{"error":"invalid_request"}"#, "invalid-request: status 400, invalid_request"),
    (400, #"{"error":"invalid_client"}"#, "invalid-client: status 400, invalid_client"),
    (401, #"{"error":"invalid_client"}"#, "invalid-client: status 401, invalid_client"),
    (403, #"{"error":"unauthorized_client"}"#, "unauthorized-client: status 403, unauthorized_client"),
    (400, #"{"error":"invalid_scope"}"#, "invalid-scope: status 400, invalid_scope"),
    (400, #"{"error":"invalid_grant"}"#, "invalid-token: status 400, invalid_grant"),
    (400, #"{"error":"invalid_token"}"#, "invalid-token: status 400, invalid_token"),
    (401, #"{"error":"invalid_token"}"#, "invalid-token: status 401, invalid_token"),
    (401, #"{"error":"invalid_request"}"#, "invalid-token: status 401, invalid_request"),
    (401, "", "invalid-token: status 401, malformed at byte 0"),
    (403, "<html>", "forbidden: status 403, malformed at byte 0"),
    (403, #"{"error":"access_denied"}"#, "forbidden: status 403, access_denied"),
    (403, #"{"error":"invalid_request"}"#, "forbidden: status 403, invalid_request"),
    (404, #"{"error":"invalid_request"}"#, "unexpected-status: status 404, invalid_request"),
    (422, #"{"error":"slow_down"}"#, "unknown-error: status 422, slow_down"),
    (400, "<html>", "malformed-answer: status 400, malformed at byte 0"),
    (429, #"{"error":"invalid_request"}"#, "throttled: status 429"),
    (500, #"{"error":"invalid_token"}"#, "unavailable: status 500"),
    (302, "", "unexpected-status: status 302"),
  ]

  @Test(arguments: refusals) func saysWhatARefusalIsAndNotWhom(status: Int, body: String, words: String) {
    #expect(error(status, body).description == words)
    let telling = body.replacing("\"}", with: #"","error_description":"\#(Self.subject) \#(Self.address)"}"#)
    let told = error(status, telling)
    #expect(told.code.rawValue == words.prefix { $0 != ":" })
    var dumped = "\(told)"
    dump(told, to: &dumped)
    #expect(!dumped.contains(Self.subject.prefix(6)) && !dumped.contains("@"))
  }

  private func error(_ status: Int, _ body: String) -> AppleTokenError {
    AppleTokenError(toBearer: HTTPClientResponse(status: status, headers: [], body: Array(body.utf8)))
  }

  @Test func usersAreNowhereToBeSeen() throws {
    let user = try TransferredUser(reading: Array(Self.whole.utf8))
    let identifier = try TransferSubject(reading: Array(#"{"transfer_sub":"001876.r"}"#.utf8))
    #expect("\(user.subject) \(identifier)" == "«subject» «transfer subject»")
    let shown = "\(user) \([user])"
    #expect(!shown.contains("820417") && !shown.contains("ep9ks2tnph"))
  }
}
