/// Why a notification is not believed: the closed list. The raw value is a metric label and a log key.
///
/// Each is a "no, and never": the same bytes will be refused again. What we cannot tell now is never in this list.
package enum Refusal: String, Error, Sendable, Hashable, CaseIterable {
  /// The body is larger than any notification.
  case bodyTooLarge = "body-too-large"
  /// The body is no JSON object, or one of its members comes twice.
  case malformedBody = "malformed-body"
  /// The body has no member `payload` that is a string.
  case payloadMissing = "payload-missing"
  /// The payload has not the three parts of a compact JWS.
  case notThreeParts = "not-three-parts"
  /// A part of the JWS is empty or not strict base64url.
  case malformedEncoding = "malformed-encoding"
  /// The header is no JSON object, or a member has another kind than it must have.
  case malformedHeader = "malformed-header"
  /// The header demands that an extension be understood.
  case criticalHeader = "critical-header"
  /// The header brings a key, or says where one lies: whoever signs does not choose our keys.
  case keyInHeader = "key-in-header"
  /// The algorithm is not RS256.
  case wrongAlgorithm = "wrong-algorithm"
  /// `typ` says that it is another kind of token.
  case wrongType = "wrong-type"
  /// `kid` is missing, too long, or not visible ASCII.
  case malformedKeyID = "malformed-key-id"
  /// Apple has no key of that name. The verifier itself never says so: see `Verdict.unknownKey`.
  case unknownKey = "unknown-key"
  /// The signature is not that key's under these bytes.
  case wrongSignature = "wrong-signature"
  /// The claims are no JSON object, or one is missing or of another kind than it must be.
  case malformedClaims = "malformed-claims"
  /// An identity token, or another token about a signed-in user: every user holds one, with the same issuer, audience
  /// and key as a notification.
  case identityToken = "identity-token"
  /// It holds no `events` or no `jti`: whatever it is, it is no notification.
  case notANotification = "not-a-notification"
  /// The issuer is somebody else.
  case wrongIssuer = "wrong-issuer"
  /// No app of any team of ours is in the audience.
  case unknownAudience = "unknown-audience"
  /// The audience names apps of several teams: a subject means another person in each.
  case severalTeams = "several-teams"

  /// The error codes of RFC 8935 §2.4 that we have a use for.
  package enum Code: String, Sendable, CaseIterable {
    /// The body is no security event token, or its claims are not in order.
    case invalidRequest = "invalid_request"
    /// The key that signed it is not acceptable.
    case invalidKey = "invalid_key"
    /// The issuer is not one that we listen to.
    case invalidIssuer = "invalid_issuer"
    /// It is not for us.
    case invalidAudience = "invalid_audience"
    /// The sender could not be authenticated.
    case authenticationFailed = "authentication_failed"
  }

  /// What the answer gives as `err`.
  package var code: Code {
    switch self {
    case .keyInHeader, .wrongAlgorithm, .malformedKeyID, .unknownKey: .invalidKey
    case .wrongSignature: .authenticationFailed
    case .wrongIssuer: .invalidIssuer
    case .unknownAudience, .severalTeams: .invalidAudience
    case .bodyTooLarge, .malformedBody, .payloadMissing, .notThreeParts, .malformedEncoding, .malformedHeader,
      .criticalHeader, .wrongType, .malformedClaims, .identityToken, .notANotification:
      .invalidRequest
    }
  }

  /// What the answer gives as `description`: a sentence for the operator of either side, without anything received.
  package var description: String {
    switch self {
    case .bodyTooLarge: "The body is larger than \(UnverifiedNotification.maximumBodySize) bytes."
    case .malformedBody: "The body is not one JSON object with distinct members."
    case .payloadMissing: "The body has no string member 'payload'."
    case .notThreeParts: "The payload is not a compact JWS: three parts with a dot between them."
    case .malformedEncoding: "A part of the JWS is empty or not strict base64url without padding."
    case .malformedHeader: "The JWS header is not one JSON object with distinct members of the right kinds."
    case .criticalHeader: "The JWS header has 'crit', and no extension is understood here."
    case .keyInHeader: "The JWS header brings or points to a key (jku, jwk, x5u, x5c or x5t), which is never followed."
    case .wrongAlgorithm: "The JWS header names another algorithm than RS256."
    case .wrongType: "The JWS header has a 'typ' of another kind of token."
    case .malformedKeyID: "The JWS header has no usable 'kid'."
    case .unknownKey: "The JWS was signed with a key that is not in Apple's set."
    case .wrongSignature: "The signature does not verify with the key that the header names."
    case .malformedClaims: "The claims are not one JSON object with iss, aud, exp, iat and jti of the right kinds."
    case .identityToken: "The claims are those of an identity token, not of a notification."
    case .notANotification: "The claims have no 'events' or no 'jti': not a notification."
    case .wrongIssuer: "The issuer is not the one that is configured."
    case .unknownAudience: "No audience is an app of a configured team."
    case .severalTeams: "The audiences are apps of more than one configured team."
    }
  }
}
