package import AccountEvents
package import EventLoop
package import HTTPClient

/// Apple's token and revocation endpoints: `POST https://appleid.apple.com/auth/token` and `…/auth/revoke`.
///
/// Nothing is tried again here, but that a connection which Apple had closed unused is replaced by a new one. A code,
/// which holds once, is sent once: where its connection breaks, the error is uncertain.
@Loop
package final class AppleTokenEndpoints {
  private let token: HTTPClientURL
  private let revocation: HTTPClientURL
  private let forms: AppleForms

  /// Endpoints that are given `deadline` for a whole answer. The addresses are Apple's, or somebody else's in a
  /// rehearsal.
  package nonisolated init(
    token: HTTPClientURL, revocation: HTTPClientURL, client: HTTPClient, secrets: ClientSecrets, deadline: Duration
  ) {
    (self.token, self.revocation) = (token, revocation)
    forms = AppleForms(client: client, secrets: secrets, deadline: deadline)
  }

  /// Exchanges the code of a sign-in for tokens. A code is used up by it, also where the error is uncertain.
  ///
  /// `redirectURI` is the one that the authorization used; nil where it used none, as in native apps.
  package func exchange(
    _ code: AuthorizationCode, redirectURI: String?, by client: ClientID
  ) async throws(AppleTokenError) -> Grant {
    var form = [("grant_type", "authorization_code"), ("code", code.text)]
    if let redirectURI { form.append(("redirect_uri", redirectURI)) }
    let grant = try await grant(form, to: client, isRepeatable: false, hiding: code.text)
    if case .granted(let tokens) = grant, tokens.refreshToken == nil || tokens.identityToken == nil {
      throw AppleTokenError(.malformedAnswer, "no refresh token or no identity token")
    }
    return grant
  }

  /// Asks whether a refresh token is still good. Apple may throttle more than one such question a day.
  package func validate(_ token: RefreshToken, of client: ClientID) async throws(AppleTokenError) -> Grant {
    try await grant(
      [("grant_type", "refresh_token"), ("refresh_token", token.text)], to: client, isRepeatable: true,
      hiding: token.text)
  }

  /// Takes back the person's whole authorization for the app: every token, those of later sign-ins too.
  ///
  /// That it returns proves nothing: Apple's answer is the same for a token that it never had. A validation that now
  /// finds the token `.invalid` does, or the `consent-revoked` that follows.
  package func revoke(_ token: some RevocableToken, of client: ClientID) async throws(AppleTokenError) {
    let form = [("token", token.text), ("token_type_hint", type(of: token).hint)]
    _ = try await forms.post(form, to: revocation, of: client, isRepeatable: true, hiding: token.text)
  }

  private func grant(
    _ form: [(String, String)], to client: ClientID, isRepeatable: Bool, hiding secret: String
  ) async throws(AppleTokenError) -> Grant {
    do throws(AppleTokenError) {
      let body = try await forms.post(form, to: token, of: client, isRepeatable: isRepeatable, hiding: secret)
      return .granted(try GrantedTokens(reading: body))
    } catch {
      guard error.code == .invalidGrant else { throw error }
      return .invalid
    }
  }
}
