package import AppleID
package import Configuration

/// Whose notifications are believed: all that a command needs which judges one that was received before.
package struct NotificationSettings: Configurable {
  /// The verifier by these settings.
  package let verifier: NotificationVerifier

  /// Reads `teams`, and of `apple` what bears on it.
  package init(reading settings: inout Settings) {
    verifier = NotificationVerifier(
      issuer: settings.readAppleIssuer(), teams: TeamsSettings(reading: &settings).teams,
      clockTolerance: settings.readClockTolerance())
  }
}
