package import Configuration

/// What the token revoker has to know of Apple, and of the teams in whose name it asks.
package struct TokenRevokerSettings: Configurable {
  /// Where Apple revokes and validates tokens.
  package let apple: AppleTokenSettings
  /// The apps, and the keys of their teams.
  package let teams: TeamsSettings

  /// Reads `apple` and `teams`.
  package init(reading settings: inout Settings) {
    apple = AppleTokenSettings(reading: &settings)
    teams = TeamsSettings(readingWithKeys: &settings)
  }
}
