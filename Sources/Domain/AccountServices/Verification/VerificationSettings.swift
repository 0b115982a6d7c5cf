package import AccountEvents
package import Configuration

/// Whose signature proves an event, and about whose apps.
package struct VerificationSettings: Configurable, Sendable {
  /// Who must have issued what proves an event.
  package let issuer: String
  /// The team of each app that is ours.
  package let teams: [ClientID: TeamID]

  /// Settings from their parts.
  package init(issuer: String, teams: [ClientID: TeamID]) { (self.issuer, self.teams) = (issuer, teams) }

  /// Reads `apple.issuer` and `teams`.
  package init(reading settings: inout Settings) {
    self.init(issuer: settings.readAppleIssuer(), teams: TeamsSettings(reading: &settings).teams)
  }
}
