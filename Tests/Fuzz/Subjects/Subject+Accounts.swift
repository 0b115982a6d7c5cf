import AccountEvents
import AccountStore
import AppleID
import JSON

@testable import AccountServices

extension Subject {
  /// What an application hands over is refused as malformed, or means the same as it is written again; so does a line of an
  /// import. Nothing but visible ASCII comes out of a query.
  static func checkAccounts(_ bytes: [UInt8]) throws(BrokenPromise) {
    if let parts = try signIn(bytes) {
      let members = parts.map { JSONValue.Member($0.key, .string($0.value)) }
      let again = try signIn(JSONValue.object(members.shuffled()).bytes)
      try promise("a sign-in means the same", again == parts)
      try promise("it is not too large", bytes.count <= SignInRequest.largestBody)
    }
    if let client = try accessToken(bytes) {
      let again = try accessToken((["clientId": .string(client.text)] as JSONValue).bytes)
      try promise("an app is the same", again == client)
    }
    try checkImport(bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    if let decoded = String(percentDecoding: text[...]), text.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) {
      try promise("what was escaped is visible", decoded.utf8.allSatisfy { 0x21...0x7e ~= $0 })
      try promise("nothing is added", decoded.utf8.count <= text.utf8.count)
    }
  }

  /// The members of a sign-in; nil where it is refused.
  private static func signIn(_ bytes: [UInt8]) throws(BrokenPromise) -> [String: String]? {
    let request: SignInRequest
    do throws(Problem) { request = try unsafe SignInRequest(reading: bytes.span.bytes) } catch {
      try promise("what is no sign-in is malformed", error.kind == .malformed)
      return nil
    }
    var parts = [
      "identityToken": request.identityToken.text, "authorizationCode": request.code.text,
      "clientId": request.client.text,
    ]
    parts["nonce"] = request.nonce?.text
    parts["redirectUri"] = request.redirectURI
    return parts
  }

  private static func accessToken(_ bytes: [UInt8]) throws(BrokenPromise) -> ClientID? {
    do throws(Problem) { return try unsafe AccessTokens.client(reading: bytes.span.bytes) } catch {
      try promise("what names no app is malformed", error.kind == .malformed)
      return nil
    }
  }

  private static func checkImport(_ bytes: [UInt8]) throws(BrokenPromise) {
    guard let app = ClientID("com.example.app"), let team = TeamID("A1B2C3D4E5"),
      let now = Timestamp(seconds: 1_800_000_000)
    else { return }
    let account: ImportedAccount
    do throws(ImportedAccount.Fault) {
      account = try ImportedAccount(reading: bytes, teams: [app: team], at: now)
    } catch {
      return  // The line is refused.
    }
    try promise("it is of the team", account.account.team == team)
    try promise("it has happened", account.signedInAt <= now)
    try promise("a token is the app's", account.tokens.allSatisfy { $0.client == app })
  }
}
