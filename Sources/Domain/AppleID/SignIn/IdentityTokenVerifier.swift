package import AccountEvents
import Cryptography
import JSON

/// What the verifier makes of an identity token.
package enum IdentityTokenVerdict: Sendable {
  /// Apple signed it for this sign-in to one of our apps.
  case verified(VerifiedIdentityToken)
  /// Not Apple, not this app or not this sign-in: no, and never.
  case refused(IdentityTokenRefusal)
  /// It names a key that is not in the set. Apple may have a new one: whoever keeps the keys finds out.
  case unknownKey(KeyID)
}

/// A sign-in as the application knows it: an identity token has to be of this one.
package struct ExpectedSignIn: Sendable {
  /// The app that the person signed in to.
  package let client: ClientID
  /// The nonce that the application sent to Apple; nil where it sent none.
  package let nonce: SignInNonce?
  /// The authorization code that came beside the token, where one did.
  package let code: AuthorizationCode?
  /// The access token that came beside the token, where one did.
  package let accessToken: AccessToken?

  /// A sign-in from its parts.
  package init(
    to client: ClientID, nonce: SignInNonce?, code: AuthorizationCode? = nil, accessToken: AccessToken? = nil
  ) {
    (self.client, self.nonce, self.code, self.accessToken) = (client, nonce, code, accessToken)
  }
}

/// Believes or refuses what claims to be an identity token from Apple.
///
/// Apple signs notifications and identity tokens with the same keys, as the same issuer and for the same audience: neither
/// passes for the other here. See Apple's *Verifying a user* and OpenID Connect Core §3.1.3.7.
package struct IdentityTokenVerifier: Sendable {
  private let issuer: String
  private let teams: [ClientID: TeamID]
  /// In milliseconds.
  private let tolerance: Int64

  /// A verifier for the apps of some teams.
  ///
  /// - Parameters:
  ///   - issuer: Who must have issued a token: `https://appleid.apple.com`, or somebody else in a rehearsal.
  ///   - teams: The team of each app that is ours.
  ///   - clockTolerance: How far Apple's clock and ours may lie apart, at most a day.
  package init(issuer: String, teams: [ClientID: TeamID], clockTolerance: Duration) {
    precondition(.zero...(.seconds(86_400)) ~= clockTolerance, "the tolerance is that of no clock")
    (self.issuer, self.teams, tolerance) = (issuer, teams, Int64(clockTolerance / .milliseconds(1)))
  }

  /// Judges a token by the clock and the keys that it is given.
  ///
  /// A key that Apple has no more is not believed, whatever it signed and when: whoever took it away from Apple would also
  /// choose the times, and the person can sign in again. It is `.unknownKey` first, because Apple may have the key again;
  /// with `wasLookedUp` Apple was asked for it in vain.
  ///
  /// Never traps and never waits, whatever the bytes are.
  package func verify(
    _ token: UnverifiedIdentityToken, of signIn: ExpectedSignIn, at now: Timestamp, keys: AppleKeySet,
    wasLookedUp: Bool = false
  ) -> IdentityTokenVerdict {
    let jws: CompactJWS
    do throws(Refusal) {
      jws = try CompactJWS([UInt8](token.text.utf8), types: ["jwt"])
    } catch {
      return .refused(IdentityTokenRefusal(error))
    }
    guard let (key, _, lastSeen) = keys.find(jws.keyID, at: now) else { return .unknownKey(jws.keyID) }
    if lastSeen != nil { return wasLookedUp ? .refused(.retiredKey) : .unknownKey(jws.keyID) }
    guard jws.isSigned(by: key) else { return .refused(.wrongSignature) }
    do throws(IdentityTokenRefusal) {
      return .verified(try believe(jws.payload, of: signIn, at: now))
    } catch {
      return .refused(error)
    }
  }

  /// Judges the claims of a token whose signature holds.
  func believe(
    _ payload: [UInt8], of signIn: ExpectedSignIn, at now: Timestamp
  ) throws(IdentityTokenRefusal) -> VerifiedIdentityToken {
    let claims: IdentityTokenClaims
    do throws(JSONError) {
      claims = try IdentityTokenClaims(reading: payload)
    } catch {
      throw .malformedClaims
    }
    if claims.hasEvents { throw .notification }
    guard let claimedIssuer = claims.issuer else { throw .malformedClaims }
    guard claimedIssuer == issuer else { throw .wrongIssuer }
    guard !claims.audiences.isEmpty else { throw .malformedClaims }
    // Further audiences could hand it on to us.
    guard claims.audiences == [signIn.client.text], let team = teams[signIn.client] else { throw .wrongAudience }
    guard
      let expiry = claims.expiry.flatMap(Timestamp.init(seconds:)),
      let issue = claims.issue.flatMap(Timestamp.init(seconds:)), issue < expiry,
      let subject = claims.subject.flatMap(AppleSubject.init)
    else { throw .malformedClaims }
    if expiry.milliseconds < now.milliseconds - tolerance { throw .expired }
    if now.milliseconds + tolerance < issue.milliseconds { throw .notYetValid }
    try Self.expectNonce(signIn.nonce, claims)
    if let token = signIn.accessToken, let hash = claims.accessTokenHash, hash != Self.halfHash(of: token) {
      throw .wrongAccessToken
    }
    if let code = signIn.code, let hash = claims.codeHash, hash != Self.halfHash(of: code) { throw .wrongCode }
    return VerifiedIdentityToken(
      account: Account(team: team, subject: subject), client: signIn.client, issuedAt: issue, expiresAt: expiry,
      authenticatedAt: try Self.optional(claims.authentication, Timestamp.init(seconds:)),
      isBoundByNonce: claims.nonce != nil, email: try Self.email(claims),
      // Apple may learn to say more.
      realUserStatus: claims.realUserStatus.map { .init(rawValue: $0) ?? .unknown },
      transferSubject: try Self.optional(claims.transferSubject, TransferSubject.init),
      organization: claims.organization, scopes: claims.scopes)
  }

  /// Apple: where `nonce_supported` is true, the nonce is mandatory; otherwise it is optional.
  private static func expectNonce(
    _ nonce: SignInNonce?, _ claims: borrowing IdentityTokenClaims
  ) throws(IdentityTokenRefusal) {
    switch (nonce, claims.nonce) {
    case (nil, nil): break
    case (nil, _): throw .unexpectedNonce
    case (let nonce?, let claim?): if !nonce.matches(claim) { throw .wrongNonce }
    case (_, nil): if claims.isNonceSupported { throw .missingNonce }
    }
  }

  /// The left half of its digest (OpenID Connect Core §3.1.3.6).
  private static func halfHash(of token: some ConfidentialText) -> String {
    Base64URL.encode(Array(SHA256.digest(of: [UInt8](token.text.utf8)).bytes[..<16]))
  }

  private static func email(
    _ claims: borrowing IdentityTokenClaims
  ) throws(IdentityTokenRefusal) -> VerifiedIdentityToken.Email? {
    // A Managed Apple Account's may be empty.
    guard let text = claims.email, !text.isEmpty else { return nil }
    guard let address = RelayAddress(text) else { throw .malformedClaims }
    return .init(address: address, isVerified: claims.isEmailVerified, isPrivate: claims.isPrivateEmail)
  }

  /// Nil for what is not there; what is there has to have its form.
  private static func optional<Written, Value>(
    _ written: Written?, _ make: (Written) -> Value?
  ) throws(IdentityTokenRefusal) -> Value? {
    guard let written else { return nil }
    guard let value = make(written) else { throw .malformedClaims }
    return value
  }
}
