package import AccountEvents
package import Configuration

/// Whose signature proves an event, and about whose apps.
package struct VerificationSettings: Configurable, Sendable {
  /// Who must have issued what proves an event.
  package let issuer: String
  /// The team of each app that is ours.
  package let teams: [ClientID: TeamID]
  /// How far a clock of ours may be ahead of the broker's.
  package let clockTolerance: Duration

  /// Settings from their parts.
  package init(issuer: String, teams: [ClientID: TeamID], clockTolerance: Duration = .seconds(60)) {
    (self.issuer, self.teams, self.clockTolerance) = (issuer, teams, clockTolerance)
  }

  /// Reads `apple.issuer`, `teams` and `apple.clock-tolerance`.
  package init(reading settings: inout Settings) {
    self.init(
      issuer: settings.readAppleIssuer(), teams: TeamsSettings(reading: &settings).teams,
      clockTolerance: settings.readClockTolerance())
  }
}
