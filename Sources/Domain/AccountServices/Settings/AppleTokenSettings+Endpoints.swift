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
    self.init(
      token: settings.tokenURL, revocation: settings.revocationURL,
      client: HTTPClient(settings, concurrency: concurrency, userAgent: userAgent),
      secrets: ClientSecrets(
        settings, keys: teams.teams.compactMapValues { teams.keys[$0] },
        secondKeys: teams.teams.compactMapValues { teams.secondKeys[$0] }, now: now, takeovers: takeovers),
      deadline: settings.deadline)
  }
}

extension AppleMigrationEndpoint {
  /// Apple's migration endpoint as the configuration has it, asked by so many at once for one team in the name of one app:
  /// while an app changes teams it is both teams', whichever has it among its audiences.
  @Loop
  package convenience init(
    _ settings: AppleMigrationSettings, teams: TeamsSettings, team: TeamID, client: ClientID, concurrency: Int,
    userAgent: String, now: @escaping @Sendable () -> Timestamp, takeovers: KeyTakeovers? = nil
  ) {
    let tokens = settings.tokens
    self.init(
      token: tokens.tokenURL, migration: settings.migrationURL,
      client: HTTPClient(tokens, concurrency: concurrency, userAgent: userAgent),
      secrets: ClientSecrets(
        tokens, keys: teams.keys[team].map { [client: $0] } ?? [:],
        secondKeys: teams.secondKeys[team].map { [client: $0] } ?? [:], now: now, takeovers: takeovers),
      deadline: tokens.deadline, now: now)
  }
}

extension HTTPClient {
  /// Connections to Apple as the configuration has them, for so many requests at once.
  @Loop
  fileprivate convenience init(_ settings: AppleTokenSettings, concurrency: Int, userAgent: String) {
    self.init(
      HTTPClientConfiguration(
        userAgent: userAgent, trustAnchors: settings.trustedCA.map { .systemAnd(file: $0) } ?? .system,
        proxy: settings.proxy == .environment ? .environment : .none, connectTimeout: settings.deadline,
        maximumConnections: concurrency, maximumRequests: concurrency))
  }
}

extension ClientSecrets {
  /// Client secrets as the configuration has them, by these keys.
  fileprivate convenience init(
    _ settings: AppleTokenSettings, keys: [ClientID: TeamKey], secondKeys: [ClientID: TeamKey],
    now: @escaping @Sendable () -> Timestamp, takeovers: KeyTakeovers?
  ) {
    self.init(
      keys: keys, secondKeys: secondKeys, audience: settings.issuer, lifetime: settings.clientSecretLifetime, now: now,
      takenOver: { takeovers?.tell($0) })
  }
}
