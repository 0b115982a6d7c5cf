/// What Apple makes of a code or a refresh token.
package enum Grant: Sendable, Equatable {
  /// It is good, and these are the tokens for it.
  case granted(GrantedTokens)
  /// It is not, or no longer, or not with this client: `invalid_grant`. For a refresh token this is final, and for one
  /// that was revoked it is the proof.
  case invalid
}
