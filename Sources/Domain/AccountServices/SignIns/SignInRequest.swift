import AccountEvents
import AccountStore
import AppleID
import Cryptography
import JSON

/// What an application hands over of a sign-in.
struct SignInRequest: Sendable {
  /// The largest body that is read, in bytes.
  static let largestBody = 65_536

  let identityToken: UnverifiedIdentityToken
  let code: AuthorizationCode
  let client: ClientID
  let nonce: SignInNonce?
  let redirectURI: String?

  /// Reads a body. Throws what is wrong with it.
  init(reading body: RawSpan) throws(Problem) {
    var texts: [String: String] = [:]
    do throws(JSONError) {
      let limits = JSONLimits(bytes: Self.largestBody, depth: 2, members: 8)
      try JSONReader.read(body, limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          guard Self.members.contains(name) else { throw JSONError(.malformed, at: value.offset) }
          if try value.kind == .null { return }
          texts[name] = try value.readString()
        }
      }
    } catch {
      throw Problem(
        .malformed, "The body is one JSON object with the texts \(Self.members.joined(separator: ", ")) and no others.")
    }
    guard let token = texts["identityToken"].flatMap(UnverifiedIdentityToken.init) else {
      throw .member("identityToken")
    }
    guard let code = texts["authorizationCode"].flatMap(AuthorizationCode.init) else {
      throw .member("authorizationCode")
    }
    guard let client = texts["clientId"].flatMap({ ClientID($0) }) else { throw .member("clientId") }
    let nonce = texts["nonce"].flatMap(SignInNonce.init)
    guard (nonce == nil) == (texts["nonce"] == nil) else { throw .member("nonce") }
    redirectURI = texts["redirectUri"]
    if let redirectURI {
      guard 1...2048 ~= redirectURI.utf8.count, redirectURI.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else {
        throw .member("redirectUri")
      }
    }
    (identityToken, self.code, self.client, self.nonce) = (token, code, client, nonce)
  }

  private static let members = ["identityToken", "authorizationCode", "clientId", "nonce", "redirectUri"]

  /// The exchange that it asks for: told from others by the key that the caller has chosen, or else by the code.
  func exchange(of account: AccountID, named key: String?, by caller: String, at now: Timestamp) -> CodeExchange {
    CodeExchange(
      request: key.map { SHA256Digest(ofTexts: ["key", caller, $0]) }
        ?? SHA256Digest(ofTexts: ["code", caller, code.text]),
      content: SHA256Digest(ofTexts: [
        caller, client.text, identityToken.text, code.text, nonce?.text ?? "", redirectURI ?? "",
      ]),
      code: SHA256Digest(ofTexts: [code.text]), account: account, client: client, begunAt: now)
  }
}

extension SHA256Digest {
  /// The digest of texts, each before its end: no two lists of texts have the same bytes, as none holds a zero.
  init(ofTexts texts: [String]) { self = SHA256.digest(of: texts.flatMap { Array($0.utf8) + [0] }) }
}

extension Problem {
  fileprivate static func member(_ name: String) -> Problem {
    Problem(.malformed, "\(name) is missing, or is not of its form.")
  }
}
