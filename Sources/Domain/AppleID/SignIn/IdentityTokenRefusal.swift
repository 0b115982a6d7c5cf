/// Why an identity token is not believed: the closed list. The raw value is a metric label and a log key.
///
/// Each is a "no, and never": the same token will be refused again, and the person has to sign in anew.
package enum IdentityTokenRefusal: String, Error, Sendable, Hashable, CaseIterable {
  /// It is no compact JWS with a header such as Apple's.
  case malformedToken = "malformed-token"
  /// The algorithm is not RS256.
  case wrongAlgorithm = "wrong-algorithm"
  /// Apple has no key of that name. The verifier itself never says so: see `IdentityTokenVerdict.unknownKey`.
  case unknownKey = "unknown-key"
  /// Apple had a key of that name, and has it no more.
  case retiredKey = "retired-key"
  /// The signature is not that key's under these bytes.
  case wrongSignature = "wrong-signature"
  /// The claims are no JSON object, or one is missing or of another kind than it must be.
  case malformedClaims = "malformed-claims"
  /// A notification of Apple's to a server: it has the same issuer, audience and key as an identity token.
  case notification
  /// The issuer is somebody else.
  case wrongIssuer = "wrong-issuer"
  /// It was issued to another app than the one that the person signed in to.
  case wrongAudience = "wrong-audience"
  /// Its time is over.
  case expired
  /// It was issued later than now.
  case notYetValid = "not-yet-valid"
  /// It belongs to another sign-in: its nonce is not the one that was sent.
  case wrongNonce = "wrong-nonce"
  /// A nonce was sent, where Apple supports it, and none came back.
  case missingNonce = "missing-nonce"
  /// It belongs to another sign-in: none was sent with this one, and it has a nonce.
  case unexpectedNonce = "unexpected-nonce"
  /// It was issued beside another access token.
  case wrongAccessToken = "wrong-access-token"
  /// It was issued beside another authorization code.
  case wrongCode = "wrong-code"

  /// What is wrong with the JWS, whatever it says.
  init(_ refusal: Refusal) {
    self =
      switch refusal {
      case .wrongAlgorithm: .wrongAlgorithm
      default: .malformedToken
      }
  }

  /// A sentence for the application's developer, without anything received.
  package var description: String {
    switch self {
    case .malformedToken: "The identity token is not a compact JWS with a header such as Apple's."
    case .wrongAlgorithm: "The header of the identity token names another algorithm than RS256."
    case .unknownKey: "The identity token was signed with a key that is not in Apple's set."
    case .retiredKey: "The identity token was signed with a key that Apple has replaced: have the person sign in again."
    case .wrongSignature: "The signature of the identity token does not verify with the key that its header names."
    case .malformedClaims:
      "The claims of the identity token are not one JSON object with iss, aud, exp, iat and sub of the right kinds."
    case .notification: "It is a server-to-server notification of Apple's, and no identity token."
    case .wrongIssuer: "The issuer of the identity token is not the one that is configured."
    case .wrongAudience: "The identity token was issued to another app than the one that is named."
    case .expired: "The identity token has expired: have the person sign in again."
    case .notYetValid: "The identity token was issued later than now: does the clock go right?"
    case .wrongNonce:
      "The nonce of the identity token is neither the one that is named nor its SHA-256: the token belongs to another "
        + "sign-in."
    case .missingNonce: "A nonce is named, and the identity token has none."
    case .unexpectedNonce:
      "The identity token has a nonce, and none is named: name the one that was sent with the sign-in."
    case .wrongAccessToken: "The identity token was issued beside another access token (at_hash)."
    case .wrongCode: "The identity token was issued beside another authorization code (c_hash)."
    }
  }
}
