import AccountEvents
package import AccountStore
import AppleID
package import Configuration
import EventLoop
package import Telemetry

/// What the validation of refresh tokens has to know: of the store, of Apple, and of the teams in whose name it asks.
package struct ValidationConfiguration: Configurable {
  /// The apps, and the keys of their teams.
  package let teams: TeamsSettings
  /// Which of them share a person's consent.
  package let groups: ConsentGroups
  /// Where Apple validates tokens.
  package let tokens: AppleTokenSettings
  /// Where the tokens are.
  package let store: StoreSettings
  /// How fast.
  package let validation: ValidationSettings

  /// Everything said, nothing assumed.
  package init(
    teams: TeamsSettings, groups: ConsentGroups, tokens: AppleTokenSettings, store: StoreSettings,
    validation: ValidationSettings
  ) {
    (self.teams, self.groups, self.tokens) = (teams, groups, tokens)
    (self.store, self.validation) = (store, validation)
  }

  /// Reads `teams`, `apple`, `store` and `accounts.validation`.
  package init(reading settings: inout Settings) {
    teams = TeamsSettings(readingWithKeys: &settings)
    groups = ConsentGroups(reading: &settings)
    tokens = AppleTokenSettings(reading: &settings)
    store = StoreSettings(reading: &settings)
    validation = ValidationSettings(reading: &settings)
  }

  /// The apps whose authorizations end with one's of the account's; nil of an app that is not the team's any more.
  fileprivate func clients(of account: Account, sharing client: ClientID) -> Set<ClientID>? {
    guard teams.teams[client] == account.team else { return nil }
    return groups.clients(of: account.team, sharing: client)
      ?? Set(teams.teams.lazy.filter { $0.value == account.team }.map(\.key))
  }
}

extension Validation {
  /// Requests that Apple may answer after a second are under way at once.
  private static let concurrency = 4...256

  /// A validation with connections of its own, so that no sign-in waits behind it.
  package convenience init(
    _ configuration: ValidationConfiguration, store: any AccountStore, rate: Int? = nil, believesAll: Bool = false,
    patience: Int? = nil, userAgent: String, takeovers: KeyTakeovers?, metrics: ValidationMetrics, logger: Logger
  ) {
    let rate = rate ?? configuration.validation.rate
    let concurrency = min(max(rate, Self.concurrency.lowerBound), Self.concurrency.upperBound)
    let endpoints = AppleTokenEndpoints(
      configuration.tokens, teams: configuration.teams, concurrency: concurrency, userAgent: userAgent,
      now: { Timestamp.now }, takeovers: takeovers)
    self.init(
      store,
      apple: { token, client throws(AppleTokenError) in try await endpoints.validate(token, of: client) }, rate: rate,
      concurrency: concurrency, clients: { configuration.clients(of: $0, sharing: $1) }, believesAll: believesAll,
      patience: patience, clock: .system, random: { Double.random(in: 0...1) }, metrics: metrics, logger: logger)
  }
}
