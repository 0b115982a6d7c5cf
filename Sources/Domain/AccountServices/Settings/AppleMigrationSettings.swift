package import Configuration
package import HTTPClient

/// Where Apple moves the users of an app that changes teams, and how it is asked.
package struct AppleMigrationSettings: Configurable, Equatable {
  /// Where the teams' access tokens come from, and how Apple is asked.
  package var tokens: AppleTokenSettings
  /// Where subjects and transfer identifiers are exchanged.
  package var migrationURL: HTTPClientURL

  /// Everything said, nothing assumed.
  package init(tokens: AppleTokenSettings, migrationURL: HTTPClientURL) {
    (self.tokens, self.migrationURL) = (tokens, migrationURL)
  }

  /// Reads what `apple` has about tokens and users that are moved.
  package init(reading settings: inout Settings) {
    tokens = AppleTokenSettings(reading: &settings)
    migrationURL = settings.read(
      "apple.migration", .httpURL, default: .apple("usermigrationinfo"),
      "Where Apple moves users of an app that changes teams.")
  }
}
