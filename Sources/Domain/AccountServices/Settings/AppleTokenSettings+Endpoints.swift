package import AccountEvents
package import AppleID
package import EventLoop
import HTTPClient

extension AppleTokenEndpoints {
  /// Apple's token endpoints as the configuration has them, for the apps of the teams whose keys it has, asked by so many
  /// at once. `takeovers` are told where a team's second key signs in place of the first.
  @Loop
  package convenience init(
    _ settings: AppleTokenSettings, teams: TeamsSettings, concurrency: Int, userAgent: String,
    now: @escaping @Sendable () -> Timestamp, takeovers: KeyTakeovers? = nil
  ) {
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: userAgent, trustAnchors: settings.trustedCA.map { .systemAnd(file: $0) } ?? .system,
        proxy: settings.proxy == .environment ? .environment : .none, connectTimeout: settings.deadline,
        maximumConnections: concurrency, maximumRequests: concurrency))
    let secrets = ClientSecrets(
      keys: teams.teams.compactMapValues { teams.keys[$0] },
      secondKeys: teams.teams.compactMapValues { teams.secondKeys[$0] }, audience: settings.issuer,
      lifetime: settings.clientSecretLifetime, now: now, takenOver: { takeovers?.tell($0) })
    self.init(
      token: settings.tokenURL, revocation: settings.revocationURL, client: client, secrets: secrets,
      deadline: settings.deadline)
  }
}
