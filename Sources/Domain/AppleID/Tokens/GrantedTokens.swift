/// What Apple gives for a code, or for a refresh token.
package struct GrantedTokens: Sendable, Equatable {
  /// The access token.
  package let accessToken: AccessToken
  /// How long the access token lives, from the answer on.
  package let lifetime: Duration
  /// The refresh token: always for a code, never for a refresh token.
  package let refreshToken: RefreshToken?
  /// Who the person is, as Apple says; nothing of it is verified here.
  package let identityToken: UnverifiedIdentityToken?
}
