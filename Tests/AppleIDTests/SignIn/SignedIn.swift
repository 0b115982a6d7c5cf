import AccountEvents
import AppleID
import JSON
import Testing

/// Identity tokens, made well or badly, and what the verifier makes of them.
enum SignedIn {
  static let nonce = "n-0S6_WzA2Mj"
  /// The SHA-256 of `nonce`, as `sha256sum` has it.
  static let hashedNonce = "0823a09b54cb9381561068b00aaf4e539b3f54604631d3e6a820879b6b04cc19"
  /// The access token and the hash of OpenID Connect Core's appendix A.
  static let accessToken = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
  static let accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"
  static let code = "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk"
  static let codeHash = "LDktKdoQak3Pk0cnXxCltA"

  static let verifier = IdentityTokenVerifier(
    issuer: "https://appleid.apple.com", teams: [Forge.app: Forge.team, Forge.otherApp: Forge.otherTeam],
    clockTolerance: .seconds(60))

  /// The claims of a good token in Apple's order, with some replaced, removed (nil) or added.
  static func claims(_ changes: KeyValuePairs<String, JSONValue?> = [:]) -> JSONValue {
    Forge.changed(
      [
        "iss": "https://appleid.apple.com", "aud": "com.example.app", "exp": .integer(Forge.issue + 86_400),
        "iat": .integer(Forge.issue), "sub": .string(Forge.subject), "nonce": .string(nonce),
        "c_hash": .string(codeHash), "email": "ada@privaterelay.appleid.com", "email_verified": true,
        "is_private_email": true, "auth_time": .integer(Forge.issue), "nonce_supported": true, "real_user_status": 2,
      ], changes)
  }

  static func signIn(
    to client: ClientID = Forge.app, nonce: String? = nonce, code: String? = code, accessToken: String? = nil
  ) -> ExpectedSignIn {
    ExpectedSignIn(
      to: client, nonce: nonce.flatMap { SignInNonce($0) }, code: code.flatMap { AuthorizationCode($0) },
      accessToken: accessToken.flatMap { AccessToken($0) })
  }

  static func verify(
    _ jws: String, of signIn: ExpectedSignIn = signIn(), at now: Timestamp = Forge.now,
    keys: AppleKeySet = Forge.keys, wasLookedUp: Bool = false
  ) throws -> IdentityTokenVerdict {
    verifier.verify(
      try #require(UnverifiedIdentityToken(jws)), of: signIn, at: now, keys: keys, wasLookedUp: wasLookedUp)
  }

  static func verify(
    claims changes: KeyValuePairs<String, JSONValue?>, of signIn: ExpectedSignIn = signIn(),
    at now: Timestamp = Forge.now
  ) throws -> IdentityTokenVerdict {
    try verify(Forge.jws(claims: claims(changes)), of: signIn, at: now)
  }
}

extension IdentityTokenVerdict {
  var token: VerifiedIdentityToken? { if case .verified(let token) = self { token } else { nil } }
  var refusal: IdentityTokenRefusal? { if case .refused(let refusal) = self { refusal } else { nil } }
  var unknownKey: KeyID? { if case .unknownKey(let id) = self { id } else { nil } }
}
