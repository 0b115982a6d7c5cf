package import Configuration
package import HTTPClient

/// Where Apple issues and revokes tokens, and how it is asked: all of it can be somebody else's in a rehearsal.
package struct AppleTokenSettings: Configurable, Equatable {
  /// Apple's name, for which client secrets are made.
  package var issuer: String
  /// Where codes and refresh tokens are exchanged.
  package var tokenURL: HTTPClientURL
  /// Where tokens are revoked.
  package var revocationURL: HTTPClientURL
  /// How long a client secret holds.
  package var clientSecretLifetime: Duration
  /// How long one request to Apple may take.
  package var deadline: Duration
  /// A PEM file with those who may vouch for Apple besides the authorities of the operating system.
  package var trustedCA: String?
  /// The way to Apple.
  package var proxy: AppleSettings.Proxy

  /// Everything said, nothing assumed.
  package init(
    issuer: String, tokenURL: HTTPClientURL, revocationURL: HTTPClientURL, clientSecretLifetime: Duration,
    deadline: Duration, trustedCA: String?, proxy: AppleSettings.Proxy
  ) {
    (self.issuer, self.tokenURL, self.revocationURL) = (issuer, tokenURL, revocationURL)
    (self.clientSecretLifetime, self.deadline) = (clientSecretLifetime, deadline)
    (self.trustedCA, self.proxy) = (trustedCA, proxy)
  }

  /// Reads what `apple` has about tokens.
  package init(reading settings: inout Settings) {
    issuer = settings.readAppleIssuer()
    tokenURL = settings.read(
      "apple.token", .httpURL, default: .apple("token"), "Where Apple exchanges codes and validates refresh tokens.")
    revocationURL = settings.read(
      "apple.revoke", .httpURL, default: .apple("revoke"), "Where Apple revokes tokens.")
    clientSecretLifetime = settings.read(
      "apple.client-secret-lifetime", .duration(.seconds(300) ... .seconds(180 * 86_400)), default: .seconds(3600),
      "How long a client secret holds, which proves to Apple that a team asks; it is renewed before.")
    deadline = settings.readAppleDeadline()
    trustedCA = settings.readAppleTrustedCA()
    proxy = settings.readAppleProxy()
  }
}
